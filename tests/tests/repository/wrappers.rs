//! Nothing that a driver can do is lost in what stands in front of it.
//!
//! The traits of drivers have defaults, so that a driver need not implement what it has nothing for. Whoever wraps a
//! driver, or stands for one in another process, and leaves out such a function takes it from the driver
//! behind. The compiler cannot see that; clippy can, where it is told to: each wrapper denies
//! `clippy::missing_trait_methods`, and this test finds the wrappers.

use std::fs;
use std::path::{Path, PathBuf};

use burst_tests::repository;
use syn::visit::{self, Visit};
use syn::{Attribute, ExprMethodCall, ImplItem, ItemFn, ItemImpl, ItemMod, Type};

/// The traits that drivers implement.
const TRAITS: &[&str] = &["Device", "PreparedModel", "Burst", "BurstExecutor", "Buffer"];
/// Whoever calls so many functions of something else by the name of its own stands in front of it. One alone may be
/// chance.
const HANDED_ON_MIN: usize = 2;
/// What a wrapper denies.
const LINT: &str = "clippy::missing_trait_methods";

/// An implementation of one of the traits.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Implementation {
    /// Such as `Device for LaunchDevice`.
    name: String,
    is_wrapper: bool,
    denies: bool,
}

#[derive(Default)]
struct Finder(Vec<Implementation>);

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, _: &'ast ItemFn) {}

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let Some((_, path, _)) = &item.trait_ else { return };
        let Some(last) = path.segments.last().map(|last| last.ident.to_string()) else { return };
        if !TRAITS.contains(&last.as_str()) || is_for_tests(&item.attrs) {
            return;
        }
        let handed_on = item.items.iter().filter(|item| match item {
            ImplItem::Fn(function) => {
                let mut calls = Calls { name: function.sig.ident.to_string(), found: false };
                calls.visit_block(&function.block);
                calls.found
            }
            _ => false,
        });
        let functions = item.items.iter().filter(|item| matches!(item, ImplItem::Fn(_))).count();
        self.0.push(Implementation {
            name: format!("{last} for {}", name_of(&item.self_ty)),
            is_wrapper: handed_on.count() >= HANDED_ON_MIN.min(functions),
            denies: item.attrs.iter().any(denies),
        });
    }
}

/// Looks for a call of a function of this name, but for one of `self` alone.
struct Calls {
    name: String,
    found: bool,
}

impl<'ast> Visit<'ast> for Calls {
    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let of_itself =
            matches!(&*call.receiver, syn::Expr::Path(path) if path.path.is_ident("self"));
        self.found |= call.method == self.name && !of_itself;
        visit::visit_expr_method_call(self, call);
    }
}

fn name_of(ty: &Type) -> String {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    }
    .unwrap_or_default()
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_test = |meta: syn::Path| meta.is_ident("test");
        attribute.path().is_ident("cfg") && attribute.parse_args().is_ok_and(is_test)
    })
}

fn denies(attribute: &Attribute) -> bool {
    let mut found = false;
    if attribute.path().is_ident("deny") {
        let _ = attribute.parse_nested_meta(|meta| {
            let names = meta.path.segments.iter().map(|segment| segment.ident.to_string());
            found |= names.collect::<Vec<_>>().join("::") == LINT;
            // `reason = "..."`
            if meta.input.peek(syn::Token![=]) {
                meta.value()?.parse::<syn::LitStr>()?;
            }
            Ok(())
        });
    }
    found
}

fn implementations(source: &str) -> Vec<Implementation> {
    let mut finder = Finder::default();
    finder.visit_file(&syn::parse_file(source).expect("a source of ours"));
    finder.0
}

/// Sources of what ships: those below a folder `src`, without tests.
fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("readable") {
        let path = entry.expect("readable").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match path.is_dir() {
            true if name != "tests" => sources(&path, into),
            false if name.ends_with(".rs") && !name.ends_with("tests.rs") => into.push(path),
            _ => {}
        }
    }
}

#[test]
fn whoever_stands_in_front_of_a_driver_leaves_out_nothing_of_its_traits() {
    let (mut wrappers, mut careless) = (0, Vec::new());
    let manifest = fs::read_to_string(repository().join("Cargo.toml")).expect("a manifest");
    let manifest: toml::Table = manifest.parse().expect("a table");
    let members = manifest["workspace"]["members"].as_array().expect("members");
    let mut files = Vec::new();
    // What the tests put in front of a driver spoils it on purpose.
    let members =
        members.iter().filter_map(toml::Value::as_str).filter(|member| *member != "tests");
    for member in members {
        sources(&repository().join(member).join("src"), &mut files);
    }
    for file in files {
        let source = fs::read_to_string(&file).expect("readable");
        for found in implementations(&source).into_iter().filter(|found| found.is_wrapper) {
            wrappers += 1;
            if !found.denies {
                careless.push(format!("{}: impl {}", file.display(), found.name));
            }
        }
    }
    assert!(wrappers >= 8, "only {wrappers} wrappers were found");
    assert!(careless.is_empty(), "these do not deny {LINT}: {careless:#?}");
}

#[test]
fn wrappers_are_told_from_drivers() {
    let source = r#"
        impl Device for Driver {
            fn name(&self) -> &str { &self.name }
            fn version_string(&self) -> &str { self.version_string.as_str() }
            fn prepare_model(&self) -> PrepareResult { self.prepare_model_for(&Caller::default()) }
        }
        impl burst_hal::Device for Careless {
            fn name(&self) -> &str { self.inner.name() }
            fn version_string(&self) -> &str { self.inner.version_string() }
        }
        #[deny(clippy::missing_trait_methods, reason = "all of it")]
        impl Burst for Careful<Inner> {
            fn execute(&mut self) { self.0.lock().execute() }
        }
        impl Device for Thing { fn own(&self) { self.own() } }
        impl Clone for Thing { fn clone(&self) -> Self { self.0.clone() } }
        #[cfg(test)]
        mod tests { impl Device for Fake { fn name(&self) -> &str { self.0.name() } } }
    "#;
    let found = implementations(source);
    let is = |name: &str, is_wrapper, denies| Implementation {
        name: name.to_owned(),
        is_wrapper,
        denies,
    };
    let want = [
        is("Device for Driver", false, false),
        is("Device for Careless", true, false),
        is("Burst for Careful", true, true),
        is("Device for Thing", false, false),
    ];
    assert_eq!(found, want);
}
