//! Which source files of a crate import which.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use syn::{Attribute, Item, UseTree, visit::Visit};

/// The name of a module: the segments of its path below the crate, none for the crate itself.
type Module = Vec<String>;

/// The files of a crate by their module, and what each imports, tests apart.
#[derive(Debug, Default)]
pub struct Imports(BTreeMap<Module, BTreeSet<Module>>);

impl Imports {
    /// Reads a crate from its root file, such as `src/lib.rs`.
    ///
    /// An import counts for the file that it names: `crate::a::b::C` for `a/b.rs` if there is
    /// one, else for `a.rs`, also where that only passes it on.
    pub fn read(root: &Path) -> Self {
        let mut files = BTreeMap::new();
        open(root.parent().expect("a folder"), root, Vec::new(), &mut files);
        let names: BTreeSet<Module> = files.keys().cloned().collect();
        let imports = |(module, file): (Module, syn::File)| {
            let mut seen = Seen { module: &module, names: &names, found: BTreeSet::new() };
            seen.visit_file(&file);
            seen.found.remove(&module);
            let found = seen.found;
            (module, found)
        };
        Self(files.into_iter().map(imports).collect())
    }

    /// Each module with those that it imports, as `a::b`; the crate itself is `crate`.
    pub fn edges(&self) -> impl Iterator<Item = (String, String)> {
        let edges = |(from, to): (&Module, &BTreeSet<Module>)| {
            to.iter().map(|to| (written(from), written(to))).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(edges).collect::<Vec<_>>().into_iter()
    }

    /// The imports between files that are part of a circle, or lie between two: none in a crate
    /// in which no file imports itself by way of others.
    pub fn circles(&self) -> Vec<(String, String)> {
        let mut edges: Vec<_> = self.edges().collect();
        loop {
            let before = edges.len();
            let from: BTreeSet<_> = edges.iter().map(|edge| edge.0.clone()).collect();
            let to: BTreeSet<_> = edges.iter().map(|edge| edge.1.clone()).collect();
            // What nothing imports, and what imports nothing, is in no circle.
            edges.retain(|edge| to.contains(&edge.0) && from.contains(&edge.1));
            if edges.len() == before {
                return edges;
            }
        }
    }
}

fn written(module: &[String]) -> String {
    if module.is_empty() { "crate".to_owned() } else { module.join("::") }
}

/// Parses a file and those of its modules, but for tests.
fn open(folder: &Path, path: &Path, module: Module, files: &mut BTreeMap<Module, syn::File>) {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    file.items.retain(|item| !is_test(attributes(item)));
    for item in &file.items {
        if let Item::Mod(child) = item
            && child.content.is_none()
        {
            let name = child.ident.to_string();
            let path: PathBuf = folder.join(format!("{name}.rs"));
            open(&folder.join(&name), &path, [module.as_slice(), &[name]].concat(), files);
        }
    }
    files.insert(module, file);
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Const(item) => &item.attrs,
        _ => &[],
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test")
    })
}

/// Collects what one file imports.
struct Seen<'a> {
    module: &'a Module,
    names: &'a BTreeSet<Module>,
    found: BTreeSet<Module>,
}

impl Seen<'_> {
    /// Takes a path as it is written; one that begins with another crate is none of ours.
    fn path(&mut self, segments: &[String]) {
        let Some(first) = segments.first() else { return };
        let ups = segments.iter().take_while(|segment| *segment == "super").count();
        let mut module = match first.as_str() {
            "crate" => segments[1..].to_vec(),
            "self" => [self.module.as_slice(), &segments[1..]].concat(),
            "super" => {
                let parents = self.module.len().saturating_sub(ups);
                [&self.module[..parents], &segments[ups..]].concat()
            }
            _ => {
                let child = [self.module.as_slice(), &segments[..1]].concat();
                if !self.names.contains(&child) {
                    return;
                }
                [self.module.as_slice(), segments].concat()
            }
        };
        while !self.names.contains(&module) {
            module.pop();
        }
        self.found.insert(module);
    }

    fn tree(&mut self, before: &[String], tree: &UseTree) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.tree(&with(&path.ident), &path.tree),
            UseTree::Name(name) => self.path(&with(&name.ident)),
            UseTree::Rename(rename) => self.path(&with(&rename.ident)),
            UseTree::Glob(_) => self.path(before),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.tree(before, tree)),
        }
    }
}

impl<'ast> Visit<'ast> for Seen<'_> {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.tree(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if segments.len() > 1 {
            self.path(&segments);
        }
        syn::visit::visit_path(self, path);
    }
}
