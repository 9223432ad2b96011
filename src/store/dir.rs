//! A directory of YAML and JSON files as the source.
