//! The sources as syntax, without the modules that only tests see.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use proc_macro2::{TokenStream, TokenTree};
use walkdir::WalkDir;

pub struct Source {
    /// Relative to the repository.
    pub path: PathBuf,
    pub text: String,
}

impl Source {
    pub fn syntax(&self) -> anyhow::Result<syn::File> {
        syn::parse_file(&self.text).with_context(|| format!("parsing {}", self.path.display()))
    }

    /// Of a file of the host: the path of its module.
    pub fn module(&self) -> anyhow::Result<Vec<String>> {
        Ok(module_path(&self.path.strip_prefix("host/src")?.with_extension("").to_string_lossy()))
    }
}

/// The host's sources, without the files of modules that are declared for tests only.
pub fn product() -> anyhow::Result<Vec<Source>> {
    let mut all = files("host/src", "rs")?;
    let mut for_tests: Vec<Vec<String>> = Vec::new();
    for source in &all {
        for item in source.syntax()?.items {
            if let syn::Item::Mod(module) = item
                && module.content.is_none()
                && only_for_tests(&module.attrs)
            {
                for_tests.push([source.module()?, vec![module.ident.to_string()]].concat());
            }
        }
    }
    all.retain(|source| source.module().is_ok_and(|module| !for_tests.iter().any(|prefix| module.starts_with(prefix))));
    Ok(all)
}

/// `job/names` and `job/verdict/mod` are the modules `job::names` and `job::verdict`.
pub fn module_path(file: &str) -> Vec<String> {
    let mut path: Vec<String> = file.split('/').map(str::to_owned).collect();
    if path.len() > 1 && path.last().is_some_and(|last| last == "mod") {
        path.pop();
    }
    path
}

pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests' package stands in the repository")
}

/// All files below a directory of the repository with this extension, in a stable order.
pub fn files(below: &str, extension: &str) -> anyhow::Result<Vec<Source>> {
    let mut found = Vec::new();
    let built = |entry: &walkdir::DirEntry| entry.file_type().is_dir() && entry.file_name() == "target";
    let walk = WalkDir::new(repository().join(below)).sort_by_file_name();
    for entry in walk.into_iter().filter_entry(|entry| !built(entry)) {
        let path = entry?.into_path();
        if path.extension().is_some_and(|its| its == extension) {
            let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
            found.push(Source { path: path.strip_prefix(repository())?.to_owned(), text });
        }
    }
    Ok(found)
}

/// `#[cfg(test)]`: what only tests see is held by other rules.
pub fn only_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string().contains("test"))
    })
}

/// Every string literal, also inside macros.
pub fn string_literals(tokens: TokenStream) -> Vec<String> {
    let mut found = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) => found.extend(string_literals(group.stream())),
            TokenTree::Literal(literal) => {
                if let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string()) {
                    found.push(text.value());
                }
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
    found
}

/// Every path in tokens that no parser of ours understands: a macro's body, an attribute's arguments.
pub fn loose_paths(tokens: TokenStream) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut path: Vec<String> = Vec::new();
    let mut colons = 0;
    for token in tokens {
        match token {
            TokenTree::Ident(name) => {
                if colons != 2 && !path.is_empty() {
                    found.push(std::mem::take(&mut path));
                }
                path.push(name.to_string());
                colons = 0;
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
            other => {
                if !path.is_empty() {
                    found.push(std::mem::take(&mut path));
                }
                colons = 0;
                if let TokenTree::Group(group) = other {
                    found.extend(loose_paths(group.stream()));
                }
            }
        }
    }
    if !path.is_empty() {
        found.push(path);
    }
    found
}
