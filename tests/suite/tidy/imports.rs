//! The import table: arrows point down, and a foreign crate stays inside the module that adapts it.

use syn::visit::{self, Visit};

use super::sources::{self, loose_paths, module_path, only_for_tests};

const RULES: &[&str] = &["job", "policy"];
const WIRING: &[&str] = &["lib", "main", "app", "cli", "config", "telemetry", "embedded"];

/// What each module may import of the host.
const TABLE: &[(&str, &[&str])] = &[
    ("job", &[]),
    ("policy", &["job"]),
    ("store", &["job"]),
    ("spool", &["job"]),
    ("source", &["job"]),
    ("remote", &["job", "policy", "spool"]),
    ("broker", &["job", "store"]),
    ("plugin", &["job", "policy", "remote", "source", "spool"]),
    ("attempt", &["job", "policy", "plugin", "remote", "source", "spool"]),
    ("delivery", &["job", "policy", "store", "broker", "attempt", "plugin", "remote"]),
    ("rehearsal", &["job", "policy", "attempt", "plugin", "remote", "source", "spool"]),
    ("upkeep", &["job", "policy", "store", "broker", "attempt", "plugin", "remote"]),
    ("web", &["job", "policy", "store"]),
];

/// Where a crate stays. What is not named may be used everywhere.
const STAYS_INSIDE: &[(&str, &[&str])] = &[
    ("sqlx", &["store", "source"]),
    ("russh", &["remote"]),
    ("russh_sftp", &["remote"]),
    ("object_store", &["remote"]),
    ("hyper", &["remote"]),
    ("hyper_util", &["remote"]),
    ("http_body_util", &["remote"]),
    ("tokio_rustls", &["remote"]),
    ("rustls_native_certs", &["remote"]),
    ("async_nats", &["broker"]),
    ("wasmtime", &["plugin"]),
    ("wit_component", &["plugin"]),
    ("axum", &["web"]),
    ("clap", WIRING),
    ("anyhow", WIRING),
];

/// The rules have no input, no output, no clock and no runtime.
const NOT_IN_RULES: &[&[&str]] = &[
    &["tokio"],
    &["tokio_util"],
    &["std", "fs"],
    &["std", "net"],
    &["std", "process"],
    &["std", "env"],
    &["std", "thread"],
    &["std", "time", "Instant"],
    &["std", "time", "SystemTime"],
];

#[test]
fn tidy_imports_hold_the_table() -> anyhow::Result<()> {
    let mut wrong = Vec::new();
    for source in sources::product()? {
        for complaint in check(&source.module()?, &source.syntax()?) {
            wrong.push(format!("{}: {complaint}", source.path.display()));
        }
    }
    assert!(wrong.is_empty(), "the import table is broken:\n{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn tidy_imports_find_what_breaks_the_table() {
    let complaints = |module: &str, text: &str| check(&module_path(module), &syn::parse_file(text).unwrap());
    for (module, text) in [
        ("job/status", "use crate::store::Pool;"),
        ("store/claim", "use crate::{job::model, attempt::Record};"),
        ("attempt/mod", "fn f() { super::store::claim() }"),
        ("attempt/mod", "use super::delivery;"),
        ("delivery/worker", "use sqlx::PgPool;"),
        ("attempt/mod", "fn f() { tracing::info!(x = crate::store::name()) }"),
        ("store/mod", "#[derive(clap::Parser)] struct S;"),
        ("policy/mod", "use std::time::{Duration, Instant};"),
        ("job/mod", "async fn f() { tokio::task::yield_now().await }"),
        ("surprise/mod", ""),
    ] {
        assert!(!complaints(module, text).is_empty(), "nothing found in {module}: {text}");
    }
    for (module, text) in [
        (
            "store/claim",
            "use crate::job::model; use super::error::StoreError; use crate::store::rows; use sqlx::PgPool;",
        ),
        ("app", "use anyhow::Context; use crate::delivery;"),
        ("policy/mod", "use std::time::Duration;"),
        ("job/names", "#[cfg(test)] mod tests { use super::*; use std::fs; }"),
    ] {
        assert_eq!(complaints(module, text), Vec::<String>::new(), "{module}: {text}");
    }
}

fn check(module: &[String], file: &syn::File) -> Vec<String> {
    let top = module.first().map(String::as_str).unwrap_or_default();
    let known = WIRING.contains(&top) || TABLE.iter().any(|(name, _)| *name == top);
    if !known {
        return vec![format!("the module `{top}` is not in the import table; add it to the design and here")];
    }
    let mut paths = Paths { module: module.to_vec(), found: Vec::new() };
    paths.visit_file(file);
    paths.found.sort();
    paths.found.dedup();
    paths.found.iter().filter_map(|path| complaint(top, path)).collect()
}

fn complaint(top: &str, path: &[String]) -> Option<String> {
    let shown = path.join("::");
    let first = path.first()?.as_str();
    if RULES.contains(&top)
        && NOT_IN_RULES
            .iter()
            .any(|forbidden| path.iter().map(String::as_str).take(forbidden.len()).eq(forbidden.iter().copied()))
    {
        return Some(format!("`{shown}`: rules have no input, output, clock or runtime"));
    }
    if first == "crate" {
        let target = path.get(1)?.as_str();
        let is_module = TABLE.iter().any(|(name, _)| *name == target) || WIRING.contains(&target);
        let may = WIRING.contains(&top)
            || target == top
            || TABLE.iter().any(|(name, imports)| *name == top && imports.contains(&target));
        return (is_module && !may).then(|| format!("`{shown}`: {top} may not import {target}"));
    }
    let (_, inside) = STAYS_INSIDE.iter().find(|(name, _)| *name == first)?;
    (!inside.contains(&top)).then(|| format!("`{shown}`: the crate {first} stays inside {}", inside.join(", ")))
}

/// Collects all paths of a file, made absolute where they start with `self` or `super`.
struct Paths {
    module: Vec<String>,
    found: Vec<Vec<String>>,
}

impl Paths {
    fn add(&mut self, path: Vec<String>) {
        let mut base = self.module.clone();
        let mut rest = path.as_slice();
        let mut relative = false;
        while let Some((first, tail)) = rest.split_first() {
            match first.as_str() {
                "self" => {}
                "super" => drop(base.pop()),
                _ => break,
            }
            relative = true;
            rest = tail;
        }
        self.found.push(if relative { [vec!["crate".to_owned()], base, rest.to_vec()].concat() } else { path });
    }

    fn add_tree(&mut self, before: &[String], tree: &syn::UseTree) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.add_tree(&with(&path.ident), &path.tree),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_tree(before, tree)),
            syn::UseTree::Name(name) => self.add(with(&name.ident)),
            syn::UseTree::Rename(name) => self.add(with(&name.ident)),
            syn::UseTree::Glob(_) => self.add(before.to_vec()),
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if only_for_tests(&item.attrs) {
            return;
        }
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !only_for_tests(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !only_for_tests(&item.attrs) {
            self.add_tree(&[], &item.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.add(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invocation: &'ast syn::Macro) {
        for path in loose_paths(invocation.tokens.clone()) {
            if path.len() > 1 {
                self.add(path);
            }
        }
        visit::visit_macro(self, invocation);
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if let syn::Meta::List(list) = &attribute.meta {
            for path in loose_paths(list.tokens.clone()) {
                if path.len() > 1 {
                    self.add(path);
                }
            }
        }
        visit::visit_attribute(self, attribute);
    }
}
