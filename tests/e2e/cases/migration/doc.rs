//! What docs/migration.md says: its commands and values, by heading.

use std::collections::BTreeSet;

use serde_json::Value;

use super::world::World;

const TEXT: &str = include_str!("../../../../docs/migration.md");

/// The document, with the commands of it that were run.
pub struct Doc {
    blocks: Vec<Block>,
    run: BTreeSet<String>,
}

/// A fenced block.
struct Block {
    heading: &'static str,
    language: &'static str,
    text: String,
}

impl Doc {
    pub fn read() -> Self {
        let (mut blocks, mut heading, mut open) = (Vec::new(), "", None::<Block>);
        for line in TEXT.lines() {
            match (&mut open, line.strip_prefix("```")) {
                (Some(_), Some(_)) => blocks.extend(open.take()),
                (Some(block), None) => block.text.extend([line, "\n"]),
                (None, Some(language)) => open = Some(Block { heading, language, text: String::new() }),
                (None, None) => heading = line.strip_prefix("## ").unwrap_or(heading),
            }
        }
        Self { blocks, run: BTreeSet::new() }
    }

    /// The values for the chart under a heading.
    pub fn values(&self, heading: &str) -> Value {
        let block = self.blocks.iter().find(|block| block.heading == heading && block.language == "yaml");
        let block = block.unwrap_or_else(|| panic!("there are no values under {heading:?}"));
        serde_saphyr::from_str(&block.text).expect("YAML")
    }

    /// Runs the commands under a heading that need no helm. Gives what each printed.
    pub fn run(&mut self, world: &World, heading: &str) -> Vec<String> {
        self.run_only(world, heading, "")
    }

    /// Those alone that begin with these words.
    pub fn run_only(&mut self, world: &World, heading: &str, words: &str) -> Vec<String> {
        let own = self.blocks.iter().filter(|block| block.heading == heading);
        let commands: Vec<String> =
            own.flat_map(Block::commands).filter(|one| one.starts_with(words)).collect();
        assert!(!commands.is_empty(), "there are no commands under {heading:?}");
        let outputs = commands.iter().map(|command| world.shell(command)).collect();
        self.run.extend(commands);
        outputs
    }

    /// Panics with a command that no test has run.
    pub fn all_was_run(&self) {
        let all: BTreeSet<String> = self.blocks.iter().flat_map(Block::commands).collect();
        let left: Vec<_> = all.difference(&self.run).collect();
        assert!(left.is_empty(), "not run: {left:?}");
    }
}

impl Block {
    /// What stands behind each prompt, with the lines that follow it; helm's are tried elsewhere.
    fn commands(&self) -> Vec<String> {
        let text = if self.language == "console" { &*self.text } else { "" };
        let commands = text.split("\n$ ").map(|part| part.strip_prefix("$ ").unwrap_or(part));
        let commands = commands.map(|one| one.trim_end().to_owned());
        commands.filter(|one| !one.is_empty() && !one.starts_with("helm ")).collect()
    }
}
