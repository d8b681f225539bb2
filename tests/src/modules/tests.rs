//! The circle test on small crates made for it: each way to write a path, and each that is none.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::tree::Tree;
use super::{circles_of_crate, crate_roots, references::references};

/// A crate of these files below `src`.
fn written(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let file = folder.path().join("src").join(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, text).expect("a file");
    }
    folder
}

/// Every `from -> to` that a path of the crate draws, by module.
fn arrows(files: &[(&str, &str)]) -> Vec<String> {
    let folder = written(files);
    let tree = Tree::read(&folder.path().join("src/lib.rs"));
    let mut found: Vec<String> = references(&tree)
        .iter()
        .map(|reference| format!("{} -> {}", tree.path(reference.from), tree.path(reference.to)))
        .map(|arrow| arrow.replace("crate::", ""))
        .collect();
    found.sort();
    found.dedup();
    found
}

/// The circles of a crate, described.
fn circles(files: &[(&str, &str)]) -> Vec<String> {
    let folder = written(files);
    let found = circles_of_crate(&folder.path().join("src/lib.rs"));
    let root = format!("{}/", folder.path().display());
    found.into_iter().map(|circle| circle.replace(&root, "")).collect()
}

/// One crate in one file: `a`, which holds `body`, and some modules for it to name.
fn arrows_of(body: &str) -> Vec<String> {
    arrows_beside(body, "")
}

/// The same with more at the crate's root.
fn arrows_beside(body: &str, root: &str) -> Vec<String> {
    let text = format!(
        "mod a {{ {body} }}
         mod b {{ pub struct Thing; pub const LIMIT: u8 = 1; pub fn make() {{}}
                  pub enum Kind {{ One }} pub trait Act {{ fn act(); }} }}
         mod c {{ pub struct Other; pub mod inner {{ pub struct Deep; pub fn dig() {{}} }} }}
         {root}"
    );
    arrows(&[("lib.rs", &text)])
}

#[test]
fn a_new_circle_is_found_and_named_by_its_paths() {
    let found = circles(&[
        ("lib.rs", "mod pump;\nmod valve;\nmod pipe;\n"),
        ("pump.rs", "use crate::valve::Valve;\n\npub struct Pump(Valve);\n"),
        ("valve.rs", "pub struct Valve;\n\nfn open() {\n    crate::pipe::fill();\n}\n"),
        ("pipe.rs", "pub fn fill() -> Option<super::pump::Pump> {\n    None\n}\n"),
    ]);
    let want = "in crate: pump -> valve -> pipe -> pump
  pump -> valve: src/pump.rs:1: `crate::valve::Valve` is crate::valve::Valve
  valve -> pipe: src/valve.rs:4: `crate::pipe::fill` is crate::pipe::fill
  pipe -> pump: src/pipe.rs:1: `super::pump::Pump` is crate::pump::Pump";
    assert_eq!(found, [want]);
}

#[test]
fn each_arrow_of_a_knot_is_in_a_circle_that_is_listed() {
    let found = circles(&[(
        "lib.rs",
        "mod a { pub struct A; use crate::b::B; use crate::c::C; }
         mod b { pub struct B; use crate::a::A; }
         mod c { pub struct C; use crate::b::B; }
         mod d { use crate::a::A; }",
    )]);
    let headings: Vec<&str> = found.iter().filter_map(|circle| circle.lines().next()).collect();
    assert_eq!(headings, ["in crate: a -> b -> a", "in crate: a -> c -> b -> a"]);
}

#[test]
fn modules_that_only_go_down_make_no_circle() {
    let found = circles(&[(
        "lib.rs",
        "mod a { use crate::b::B; use crate::c::C; }
         mod b { pub struct B; use crate::c::C; }
         mod c { pub struct C; }",
    )]);
    assert_eq!(found, [] as [&str; 0]);
}

#[test]
fn a_module_and_those_below_it_may_need_each_other() {
    let found = circles(&[(
        "lib.rs",
        "mod a { pub struct Top; use inner::Deep;
                 mod inner { pub struct Deep; use super::Top; use crate::Root;
                             mod innermost { use crate::a::Top; } } }
         struct Root; use a::Top;",
    )]);
    assert_eq!(found, [] as [&str; 0]);
}

#[test]
fn what_is_below_a_module_counts_as_that_module_to_its_neighbours() {
    let found = circles(&[(
        "lib.rs",
        "mod a { mod x { use crate::b::y::Deep; } pub mod z { pub struct Flat; } }
         mod b { pub mod y { pub struct Deep; } mod w { use crate::a::z::Flat; } }",
    )]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("in crate: a -> b -> a\n"), "{}", found[0]);
}

#[test]
fn a_circle_deep_in_the_crate_is_named_with_the_module_that_holds_it() {
    let found = circles(&[
        ("lib.rs", "mod outer;"),
        ("outer/mod.rs", "mod left; mod right;"),
        ("outer/left.rs", "pub struct L; use super::right::R;"),
        ("outer/right.rs", "pub struct R; use super::left::L;"),
    ]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("in crate::outer: left -> right -> left\n"), "{}", found[0]);
}

#[test]
fn every_way_to_write_a_path_draws_an_arrow() {
    for (body, want) in [
        // `use` lines.
        ("use crate::b::Thing;", "a -> b"),
        ("use super::b::Thing;", "a -> b"),
        ("use self::super::b::Thing;", "a -> b"),
        ("use crate::{b::{Thing, make as build}};", "a -> b"),
        ("use crate::b::{self};", "a -> b"),
        ("use crate::b as other;", "a -> b"),
        ("use crate::b::Act as _;", "a -> b"),
        ("use crate::b::*;", "a -> b"),
        ("use crate::b::Kind::*;", "a -> b"),
        ("fn f() { use crate::b::make; make(); }", "a -> b"),
        ("fn f() { use super::c as b; b::Other; }", "a -> c"),
        ("use crate::c::inner::Deep;", "a -> c::inner"),
        // Paths where they are needed.
        ("fn f() { crate::b::make(); }", "a -> b"),
        ("fn f() -> crate::b::Thing { loop {} }", "a -> b"),
        ("fn f(of: Option<Vec<super::b::Thing>>) {}", "a -> b"),
        ("struct S<T: crate::b::Act>(T);", "a -> b"),
        ("impl crate::b::Act for u8 { fn act() {} }", "a -> b"),
        ("fn f() { <u8 as crate::b::Act>::act(); }", "a -> b"),
        ("fn f() { <crate::b::Thing>::default(); }", "a -> b"),
        ("fn f() { crate::b::Kind::One; }", "a -> b"),
        ("fn f(n: u8) { match n { crate::b::LIMIT => {} _ => {} } }", "a -> b"),
        ("fn f() -> [u8; crate::b::LIMIT as usize] { loop {} }", "a -> b"),
        ("#[arg(value_parser = crate::b::make)] struct S;", "a -> b"),
        ("struct S { #[arg(default_value_t = super::b::LIMIT)] n: u8 }", "a -> b"),
    ] {
        assert_eq!(arrows_of(body), [want], "{body}");
    }
}

#[test]
fn tokens_of_macros_are_searched_for_paths() {
    for (body, want) in [
        ("fn f() { assert_eq!(1, crate::b::LIMIT); }", "a -> b"),
        ("fn f() { vec![vec![super::b::Thing]]; }", "a -> b"),
        ("fn f() { println!(\"{}\", 1..crate::b::LIMIT); }", "a -> b"),
        ("thread_local! { static S: crate::b::Thing = loop {}; }", "a -> b"),
        ("items! { use crate::{c::inner::{Deep, dig}}; }", "a -> c::inner"),
        ("macro_rules! m { () => { $crate::b::make() } }", "a -> b"),
    ] {
        assert_eq!(arrows_of(body), [want], "{body}");
    }
    let through = arrows_of("use crate::c::inner; fn f() { vec![inner::Deep]; }");
    assert_eq!(through, ["a -> c::inner"]);
}

#[test]
fn names_that_a_glob_brings_in_count_where_they_are_used() {
    let root = "pub use b::{LIMIT, Thing}; pub use c::inner::dig;";
    for (body, want) in [
        ("use super::*; fn f(_: Thing) {}", "a -> b"),
        ("use super::*; fn f() { dig(); }", "a -> c::inner"),
        ("use super::*; fn f(n: u8) { match n { LIMIT => {} _ => {} } }", "a -> b"),
        ("use super::*; fn f() { vec![Thing]; assert!(dig()); }", "a -> b, a -> c::inner"),
        ("fn f() { use crate::*; dig() }", "a -> c::inner"),
    ] {
        let mut found = arrows_beside(body, root);
        found.retain(|arrow| arrow.starts_with("a -> ") && arrow != "a -> crate");
        assert_eq!(found.join(", "), want, "{body}");
    }
}

#[test]
fn variables_and_parameters_are_not_the_items_of_their_names() {
    let root = "pub use b::make; pub use c::inner::Deep;";
    for body in [
        "use super::*; fn f(make: u8) -> u8 { make + 1 }",
        "use super::*; fn f() { let make = 1; assert!(make > 0); vec![make]; }",
        "use super::*; fn f() { for (make, _) in [(1, 2)] { g(make) } }",
        "use super::*; fn f() { [1].map(|make| make + 1); }",
        "use super::*; fn f<Deep>(_: Deep) {}",
        "use super::*; struct S<Deep>(Deep);",
        "use super::*; fn f(x: X) { x.make(); assert!(x.make()); vec![S { make: 1 }]; }",
    ] {
        let mut found = arrows_beside(body, root);
        found.retain(|arrow| arrow.starts_with("a -> ") && arrow != "a -> crate");
        assert_eq!(found, [] as [&str; 0], "{body}");
    }
}

#[test]
fn what_is_no_path_to_a_module_draws_no_arrow() {
    for body in [
        "",
        "use std::fmt; fn f(_: fmt::Result, _: ::std::io::Error) {}",
        "fn make() {} fn f() { make(); self::make(); }",
        "/// See [`crate::b::Thing`].\n fn f() {}",
        "#![doc = \"[`crate::b`]\"] fn f() {}",
        "pub(in crate::b) fn f() {}",
        "pub(crate) fn f() {} m! { pub(crate) fn g() {} }",
        "fn f(x: X) { x.b.Thing(); m!(x.b.Thing()); m!(<T as U>::b::Thing()); }",
        "fn f<'b>(_: &'b u8) { m!(&'b u8); }",
        "fn f() { println!(\"crate::b::Thing\"); }",
    ] {
        assert_eq!(arrows_of(body), [] as [&str; 0], "{body}");
    }
}

#[test]
fn what_is_compiled_for_tests_only_may_look_at_anything() {
    for body in [
        "#[cfg(test)] mod tests { use crate::b::Thing; }",
        "#[cfg(test)] use crate::b::Thing;",
        "#[cfg(test)] impl crate::b::Act for u8 {}",
        "#[test] fn f() { crate::b::make(); }",
        "struct S; impl S { #[cfg(test)] fn f() { crate::b::make(); } }",
        "fn f() { #[cfg(test)] let _ = crate::b::make(); }",
        "#[cfg(all(test, feature = \"x\"))] use crate::b::Thing;",
        "#[cfg(any(test, all(unix, test)))] use crate::b::Thing;",
    ] {
        assert_eq!(arrows_of(body), [] as [&str; 0], "{body}");
    }
    for body in [
        "#[cfg(not(test))] use crate::b::Thing;",
        "#[cfg(any(test, feature = \"x\"))] use crate::b::Thing;",
        "#[cfg(loom)] use crate::b::Thing;",
    ] {
        assert_eq!(arrows_of(body), ["a -> b"], "{body}");
    }
}

#[test]
fn a_path_leads_to_where_the_item_is_defined() {
    let root = "pub use front::Renamed; pub mod front { pub use crate::shelf::Thing as Renamed;
                pub use std::io::Error; }
                pub mod shelf { pub use crate::b::*; }";
    for (body, want) in [
        ("use crate::Renamed;", "a -> b"),
        ("use crate::front::Renamed as Again; fn f(_: Again) {}", "a -> b"),
        ("fn f() { crate::shelf::make(); }", "a -> b"),
        ("use crate::shelf as s; fn f(_: s::Kind) {}", "a -> b, a -> shelf"),
        // From another crate: what brings it into this one stands for it.
        ("use crate::front::Error;", "a -> front"),
    ] {
        let mut found = arrows_beside(body, root);
        found.retain(|arrow| arrow.starts_with("a -> "));
        assert_eq!(found.join(", "), want, "{body}");
    }
}

#[test]
fn going_round_by_a_re_export_hides_no_circle_and_a_re_export_makes_none() {
    let facade = |low: &str| {
        circles(&[
            ("lib.rs", "mod high; mod low; pub use high::High; pub use low::Low;"),
            ("high.rs", "pub struct High(crate::Low);"),
            ("low.rs", low),
        ])
    };
    assert_eq!(facade("pub struct Low;").len(), 0);
    assert_eq!(facade("pub struct Low; fn f(_: crate::High) {}").len(), 1);
    let in_between = circles(&[(
        "lib.rs",
        "mod face { pub use crate::body::{Head, Foot}; }
         mod body { pub struct Head; pub struct Foot; use crate::face::Foot as Own; }",
    )]);
    assert_eq!(in_between, [] as [&str; 0]);
}

#[test]
fn a_macro_in_scope_by_its_position_leads_to_its_module() {
    let lib = "#[macro_use] mod helpers { macro_rules! helper { () => {} } }
               mod user { fn f() { helper!(); } }
               mod exported { #[macro_export] macro_rules! offer { () => {} } }
               mod taker { fn f() { crate::offer!(); } }
               mod own { macro_rules! helper { () => {} } mod below { fn f() { helper!(); } } }
               mod scoped { macro_rules! inner { () => {} } pub(crate) use inner; }
               mod asker { use crate::scoped::inner; fn f() { inner!(); } }";
    let want = ["asker -> scoped", "own::below -> own", "taker -> exported", "user -> helpers"];
    assert_eq!(arrows(&[("lib.rs", lib)]), want);
}

#[test]
fn files_of_modules_are_found_where_rust_looks_for_them() {
    let found = arrows(&[
        ("lib.rs", "mod flat; mod deep; #[path = \"odd/place.rs\"] mod moved; struct Root;"),
        ("flat.rs", "mod below; mod inline { mod within; }"),
        ("flat/below.rs", "use crate::Root;"),
        ("flat/inline/within.rs", "use crate::Root;"),
        ("deep/mod.rs", "mod below; mod inline { #[path = \"other.rs\"] mod within; }"),
        ("deep/below.rs", "use crate::Root;"),
        ("deep/inline/other.rs", "use crate::Root;"),
        ("odd/place.rs", "mod beside;"),
        ("odd/beside.rs", "use crate::Root;"),
    ]);
    let modules = [
        "deep::below",
        "deep::inline::within",
        "flat::below",
        "flat::inline::within",
        "moved::beside",
    ];
    let want = modules.map(|module| format!("{module} -> crate"));
    assert_eq!(found, want);
}

#[test]
fn a_crate_is_found_for_each_root_of_a_package() {
    let package = written(&[("lib.rs", ""), ("bin/tool.rs", ""), ("bin/big/main.rs", "")]);
    let at = |path: &str| package.path().join(path);
    fs::write(at("Cargo.toml"), "[[bin]]\nname = \"odd\"\npath = \"src/odd.rs\"\n").expect("file");
    fs::write(at("src/odd.rs"), "").expect("file");
    fs::create_dir(at("examples")).expect("folder");
    fs::write(at("examples/show.rs"), "").expect("file");
    let roots = crate_roots(package.path());
    let found: Vec<&Path> =
        roots.iter().map(|root| root.strip_prefix(package.path()).expect("below")).collect();
    let want =
        ["examples/show.rs", "src/bin/big/main.rs", "src/bin/tool.rs", "src/lib.rs", "src/odd.rs"];
    assert_eq!(found, want.map(Path::new));
}
