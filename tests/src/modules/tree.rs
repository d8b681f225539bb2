//! The modules of one crate as its sources declare them, and the names that each module binds.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, Item, UseTree, Visibility};

use super::attributes::{is_for_tests, path_attribute};

/// Index of a module in [`Tree::modules`].
pub(super) type ModuleId = usize;

/// The root of the crate: `lib.rs`, `main.rs` or the file of a binary.
pub(super) const ROOT: ModuleId = 0;

/// All modules of a crate that are not there for its tests alone.
pub(super) struct Tree {
    pub(super) modules: Vec<Module>,
    /// Modules under `#[macro_use]`: their macros are in scope without a path.
    pub(super) macro_use: Vec<ModuleId>,
}

/// One module: a file, or `mod name { … }` within a file.
pub(super) struct Module {
    pub(super) name: String,
    pub(super) parent: Option<ModuleId>,
    /// The file that holds it.
    pub(super) file: PathBuf,
    pub(super) names: Names,
    /// What it says, without its own modules and without what `#[cfg(test)]` leaves out.
    pub(super) items: Vec<Item>,
}

/// The names that a module, or a block of statements, binds.
#[derive(Default)]
pub(super) struct Names {
    bindings: BTreeMap<String, Vec<Binding>>,
    /// `use path::*;`
    pub(super) globs: Vec<Import>,
}

/// What a name stands for.
pub(super) struct Binding {
    pub(super) meaning: Meaning,
    pub(super) visible: Visible,
}

/// The three meanings of a name.
pub(super) enum Meaning {
    /// An item that this module defines; a name may be a type, a value and a macro at once.
    Item { module: ModuleId, kinds: Kinds },
    /// A module below this one.
    Module(ModuleId),
    /// Another path's name: `use path;` or `use path as name;`.
    Import(Import),
}

/// The path of a `use` line.
pub(super) struct Import {
    pub(super) path: Written,
    pub(super) visible: Visible,
}

/// A path as the source writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) segments: Vec<String>,
    /// `::name`: begins with another crate.
    pub(super) absolute: bool,
}

/// Who may use a name.
#[derive(Clone, Copy)]
pub(super) enum Visible {
    Everywhere,
    /// This module and those below it.
    Within(ModuleId),
}

/// A set of name spaces.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const TYPE: Kinds = Kinds(1);
    pub(super) const VALUE: Kinds = Kinds(2);
    pub(super) const MACRO: Kinds = Kinds(4);
    pub(super) const TYPE_OR_VALUE: Kinds = Kinds(3);
    pub(super) const ANY: Kinds = Kinds(7);

    pub(super) fn meets(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }
}

impl Names {
    pub(super) fn of(&self, name: &str) -> &[Binding] {
        self.bindings.get(name).map_or(&[], Vec::as_slice)
    }

    pub(super) fn bind(&mut self, name: String, meaning: Meaning, visible: Visible) {
        self.bindings.entry(name).or_default().push(Binding { meaning, visible });
    }

    /// Binds what `items` define and import, modules excepted.
    pub(super) fn declare<'a>(
        &mut self,
        items: impl IntoIterator<Item = &'a Item>,
        module: ModuleId,
        parent: Option<ModuleId>,
    ) {
        for item in items {
            if let Item::Use(line) = item {
                let visible = visibility(&line.vis, module, parent);
                for leaf in leaves(line) {
                    self.import(leaf, visible);
                }
            } else {
                for (name, kinds, vis) in defined(item) {
                    let visible =
                        vis.map_or(Visible::Within(module), |vis| visibility(vis, module, parent));
                    self.bind(name, Meaning::Item { module, kinds }, visible);
                }
            }
        }
    }

    fn import(&mut self, leaf: Leaf, visible: Visible) {
        let import = Import { path: leaf.path, visible };
        match leaf.name {
            LeafName::Glob => self.globs.push(import),
            LeafName::Unnamed => {}
            LeafName::Named(name) => self.bind(name, Meaning::Import(import), visible),
        }
    }
}

/// One path of a `use` line.
pub(super) struct Leaf {
    pub(super) path: Written,
    pub(super) name: LeafName,
    pub(super) span: proc_macro2::Span,
}

/// What a path of a `use` line binds.
pub(super) enum LeafName {
    Named(String),
    /// `as _`
    Unnamed,
    /// `::*`
    Glob,
}

/// The paths of a `use` line, its groups unfolded.
pub(super) fn leaves(line: &syn::ItemUse) -> Vec<Leaf> {
    let mut found = Vec::new();
    unfold(&line.tree, &mut Vec::new(), line.leading_colon.is_some(), &mut found);
    found
}

fn unfold(tree: &UseTree, before: &mut Vec<String>, absolute: bool, found: &mut Vec<Leaf>) {
    let mut leaf = |segments: Vec<String>, name, span| {
        found.push(Leaf { path: Written { segments, absolute }, name, span });
    };
    // `use a::{self}` names `a`.
    let joined = |last: &syn::Ident| {
        let mut segments = before.clone();
        if last != "self" || segments.is_empty() {
            segments.push(plain(last));
        }
        segments
    };
    match tree {
        UseTree::Path(path) => {
            before.push(plain(&path.ident));
            unfold(&path.tree, before, absolute, found);
            before.pop();
        }
        UseTree::Name(name) => {
            let segments = joined(&name.ident);
            let bound = segments.last().cloned().expect("a use line names something");
            leaf(segments, LeafName::Named(bound), name.ident.span());
        }
        UseTree::Rename(rename) => {
            let name = if rename.rename == "_" {
                LeafName::Unnamed
            } else {
                LeafName::Named(plain(&rename.rename))
            };
            leaf(joined(&rename.ident), name, rename.ident.span());
        }
        UseTree::Glob(glob) => {
            leaf(before.clone(), LeafName::Glob, glob.star_token.spans[0]);
        }
        UseTree::Group(group) => {
            for tree in &group.items {
                unfold(tree, before, absolute, found);
            }
        }
    }
}

/// An identifier's text, `r#type` as `type`.
pub(super) fn plain(ident: &syn::Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").map_or(text.clone(), str::to_owned)
}

/// What an item defines: its name, its name spaces and its visibility (`None`: as a macro has it).
fn defined(item: &Item) -> Vec<(String, Kinds, Option<&Visibility>)> {
    let one = |ident, kinds, vis| vec![(plain(ident), kinds, Some(vis))];
    match item {
        Item::Const(item) => one(&item.ident, Kinds::VALUE, &item.vis),
        Item::Static(item) => one(&item.ident, Kinds::VALUE, &item.vis),
        Item::Fn(item) => one(&item.sig.ident, Kinds::VALUE, &item.vis),
        Item::Struct(item) => one(&item.ident, Kinds::TYPE_OR_VALUE, &item.vis),
        Item::Enum(item) => one(&item.ident, Kinds::TYPE, &item.vis),
        Item::Union(item) => one(&item.ident, Kinds::TYPE, &item.vis),
        Item::Trait(item) => one(&item.ident, Kinds::TYPE, &item.vis),
        Item::TraitAlias(item) => one(&item.ident, Kinds::TYPE, &item.vis),
        Item::Type(item) => one(&item.ident, Kinds::TYPE, &item.vis),
        Item::Macro(item) => {
            item.ident.iter().map(|ident| (plain(ident), Kinds::MACRO, None)).collect()
        }
        Item::ForeignMod(block) => block
            .items
            .iter()
            .filter_map(|item| match item {
                syn::ForeignItem::Fn(item) => Some((&item.sig.ident, &item.vis)),
                syn::ForeignItem::Static(item) => Some((&item.ident, &item.vis)),
                _ => None,
            })
            .map(|(ident, vis)| (plain(ident), Kinds::VALUE, Some(vis)))
            .collect(),
        _ => Vec::new(),
    }
}

fn visibility(vis: &Visibility, module: ModuleId, parent: Option<ModuleId>) -> Visible {
    match vis {
        Visibility::Inherited => Visible::Within(module),
        Visibility::Restricted(limit) if limit.path.is_ident("self") => Visible::Within(module),
        Visibility::Restricted(limit) if limit.path.is_ident("super") => {
            Visible::Within(parent.unwrap_or(ROOT))
        }
        Visibility::Public(_) | Visibility::Restricted(_) => Visible::Everywhere,
    }
}

impl Tree {
    /// Reads the crate whose root is this file, and every file that it names as a module.
    ///
    /// # Panics
    /// With the file's name, when a file is not there or is not Rust.
    pub(super) fn read(root: &Path) -> Tree {
        let mut tree = Tree { modules: Vec::new(), macro_use: Vec::new() };
        let folder = root.parent().expect("a root lies in a folder").to_owned();
        let items = parse(root);
        tree.add("crate".into(), None, root.to_owned(), &folder, items);
        tree
    }

    /// Adds a module and those below it. `folder` is where `mod name;` of it looks for its file.
    fn add(
        &mut self,
        name: String,
        parent: Option<ModuleId>,
        file: PathBuf,
        folder: &Path,
        items: Vec<Item>,
    ) -> ModuleId {
        let id = self.modules.len();
        let (below, items): (Vec<Item>, Vec<Item>) = items
            .into_iter()
            .filter(|item| !is_for_tests(attributes(item)))
            .partition(|item| matches!(item, Item::Mod(_)));
        let mut names = Names::default();
        names.declare(&items, id, parent);
        self.modules.push(Module { name, parent, file: file.clone(), names, items });
        self.export_macros(id);
        for module in below {
            let Item::Mod(module) = module else { unreachable!("sorted out above") };
            let visible = visibility(&module.vis, id, parent);
            let name = plain(&module.ident);
            let macro_use =
                module.attrs.iter().any(|attribute| attribute.path().is_ident("macro_use"));
            let child = self.add_child(id, &file, folder, module);
            if macro_use {
                self.macro_use.push(child);
            }
            self.modules[id].names.bind(name, Meaning::Module(child), visible);
        }
        id
    }

    fn add_child(
        &mut self,
        parent: ModuleId,
        file: &Path,
        folder: &Path,
        module: syn::ItemMod,
    ) -> ModuleId {
        let name = plain(&module.ident);
        let own_folder = folder.join(&name);
        if let Some((_, items)) = module.content {
            return self.add(name, Some(parent), file.to_owned(), &own_folder, items);
        }
        let file = if let Some(path) = path_attribute(&module.attrs) {
            let in_block = self.modules[parent]
                .parent
                .is_some_and(|above| self.modules[above].file == self.modules[parent].file);
            let from = if in_block { folder } else { file.parent().expect("a folder") };
            from.join(path)
        } else {
            let beside = folder.join(format!("{name}.rs"));
            if beside.exists() { beside } else { own_folder.join("mod.rs") }
        };
        // A file found by `#[path]` and every `mod.rs` keep their modules beside them.
        let beside = path_attribute(&module.attrs).is_some() || file.ends_with("mod.rs");
        let below = if beside { file.parent().expect("a folder").to_owned() } else { own_folder };
        let items = parse(&file);
        self.add(name, Some(parent), file, &below, items)
    }

    /// Puts the macros of a module that bear `#[macro_export]` into the crate's root.
    fn export_macros(&mut self, module: ModuleId) {
        let exported: Vec<String> = self.modules[module]
            .items
            .iter()
            .filter_map(|item| match item {
                Item::Macro(item) => Some(item),
                _ => None,
            })
            .filter(|item| item.attrs.iter().any(|it| it.path().is_ident("macro_export")))
            .filter_map(|item| item.ident.as_ref().map(plain))
            .collect();
        for name in exported {
            let meaning = Meaning::Item { module, kinds: Kinds::MACRO };
            self.modules[ROOT].names.bind(name, meaning, Visible::Everywhere);
        }
    }

    /// The module and all above it, the root first.
    pub(super) fn line(&self, module: ModuleId) -> Vec<ModuleId> {
        let mut line = vec![module];
        let mut at = module;
        while let Some(parent) = self.modules[at].parent {
            line.push(parent);
            at = parent;
        }
        line.reverse();
        line
    }

    /// Its path from the crate's root, such as `crate::a::b`.
    pub(super) fn path(&self, module: ModuleId) -> String {
        let line = self.line(module);
        let names: Vec<&str> = line.iter().map(|id| self.modules[*id].name.as_str()).collect();
        names.join("::")
    }
}

fn parse(file: &Path) -> Vec<Item> {
    let text =
        fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let parsed = syn::parse_file(&text);
    parsed
        .unwrap_or_else(|error| panic!("{}:{}: {error}", file.display(), error.span().start().line))
        .items
}

/// The attributes of an item, for those kinds of items that bind names or hold paths.
pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
