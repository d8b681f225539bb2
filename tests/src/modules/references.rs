//! Every path in the sources of a crate that leads from one of its modules to another.

use std::collections::HashSet;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, Meta};

use super::attributes::is_for_tests;
use super::resolve::{Scope, Target};
use super::tokens;
use super::tree::{Kinds, LeafName, ModuleId, Names, Tree, Written, attributes, leaves, plain};

/// A path in module `from` that names something of module `to`.
pub(super) struct Reference {
    pub(super) from: ModuleId,
    pub(super) to: ModuleId,
    /// Line in the file of `from`.
    pub(super) line: usize,
    /// The path as it is written.
    pub(super) path: String,
    /// The item's name where it is defined; empty when the path names the module itself.
    pub(super) item: String,
}

/// All references of a crate, module by module.
pub(super) fn references(tree: &Tree) -> Vec<Reference> {
    let mut found = Vec::new();
    for (module, content) in tree.modules.iter().enumerate() {
        let mut reader =
            Reader { tree, module, blocks: Vec::new(), locals: Vec::new(), found: Vec::new() };
        for item in &content.items {
            reader.visit_item(item);
        }
        found.append(&mut reader.found);
    }
    found
}

/// Walks through the items of one module.
struct Reader<'a> {
    tree: &'a Tree,
    module: ModuleId,
    /// What the blocks around the current position bind.
    blocks: Vec<Names>,
    /// Variables and generic parameters of the functions and items around the current position.
    locals: Vec<HashSet<String>>,
    found: Vec<Reference>,
}

impl Reader<'_> {
    fn refer(&mut self, path: &Written, kinds: Kinds, span: Span) {
        if let ([only], false) = (path.segments.as_slice(), path.absolute)
            && self.locals.iter().any(|names| names.contains(only))
        {
            return;
        }
        let scope = Scope { module: self.module, blocks: &self.blocks };
        for target in self.tree.resolve(scope, path, kinds) {
            let (to, item) = match target {
                Target::Module(module) => (module, String::new()),
                Target::Item { module, name } => (module, name),
            };
            if to != self.module {
                let (line, path) = (span.start().line, path.segments.join("::"));
                self.found.push(Reference { from: self.module, to, line, path, item });
            }
        }
    }

    fn refer_in_tokens(&mut self, tokens: &proc_macro2::TokenStream) {
        for found in tokens::paths(tokens.clone()) {
            self.refer(&found.path, found.kinds, found.span);
        }
    }

    /// Runs `inner` with these names known to be variables or parameters, not items.
    fn with_locals(&mut self, names: HashSet<String>, inner: impl FnOnce(&mut Self)) {
        self.locals.push(names);
        inner(self);
        self.locals.pop();
    }
}

fn written(path: &syn::Path) -> Written {
    let segments = path.segments.iter().map(|segment| plain(&segment.ident)).collect();
    Written { segments, absolute: path.leading_colon.is_some() }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_for_tests(attributes(item)) {
            return;
        }
        let generics = match item {
            Item::Enum(item) => Some(&item.generics),
            Item::Fn(item) => Some(&item.sig.generics),
            Item::Impl(item) => Some(&item.generics),
            Item::Struct(item) => Some(&item.generics),
            Item::Trait(item) => Some(&item.generics),
            Item::Type(item) => Some(&item.generics),
            Item::Union(item) => Some(&item.generics),
            _ => None,
        };
        let parameters = generics.map(parameters).unwrap_or_default();
        self.with_locals(parameters, |reader| visit::visit_item(reader, item));
    }

    fn visit_item_use(&mut self, line: &'ast syn::ItemUse) {
        for leaf in leaves(line) {
            let kinds = if matches!(leaf.name, LeafName::Glob) { Kinds::TYPE } else { Kinds::ANY };
            self.refer(&leaf.path, kinds, leaf.span);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let mut names = Variables::default();
        names.visit_item_fn(item);
        self.with_locals(names.0, |reader| visit::visit_item_fn(reader, item));
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let attributes: &[Attribute] = match item {
            syn::ImplItem::Fn(item) => &item.attrs,
            syn::ImplItem::Const(item) => &item.attrs,
            syn::ImplItem::Type(item) => &item.attrs,
            syn::ImplItem::Macro(item) => &item.attrs,
            _ => &[],
        };
        if !is_for_tests(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        let mut names = Variables(parameters(&item.sig.generics));
        names.visit_impl_item_fn(item);
        self.with_locals(names.0, |reader| visit::visit_impl_item_fn(reader, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        let mut names = Variables(parameters(&item.sig.generics));
        names.visit_trait_item_fn(item);
        self.with_locals(names.0, |reader| visit::visit_trait_item_fn(reader, item));
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        let mut names = Names::default();
        let items = block.stmts.iter().filter_map(|statement| match statement {
            syn::Stmt::Item(item) => Some(item),
            _ => None,
        });
        let items = items.filter(|item| !is_for_tests(attributes(item)));
        names.declare(items, self.module, self.tree.modules[self.module].parent);
        self.blocks.push(names);
        visit::visit_block(self, block);
        self.blocks.pop();
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !is_for_tests(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.refer(&written(path), Kinds::TYPE_OR_VALUE, path.span());
        visit::visit_path(self, path);
    }

    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        match &path.qself {
            Some(qself) if qself.position == 0 => {
                self.visit_qself(qself);
                visit::visit_path(self, &path.path);
            }
            _ => visit::visit_expr_path(self, path),
        }
    }

    fn visit_type_path(&mut self, path: &'ast syn::TypePath) {
        match &path.qself {
            Some(qself) if qself.position == 0 => {
                self.visit_qself(qself);
                visit::visit_path(self, &path.path);
            }
            _ => visit::visit_type_path(self, path),
        }
    }

    /// `NAME` in a pattern is a constant or a variant, `name` a new variable.
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        if is_constant(pattern) {
            let path = Written { segments: vec![plain(&pattern.ident)], absolute: false };
            self.refer(&path, Kinds::VALUE, pattern.ident.span());
        }
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.refer(&written(&call.path), Kinds::MACRO, call.path.span());
        self.refer_in_tokens(&call.tokens);
    }

    /// Attributes have paths too, such as those for `clap`. Documentation has none that count.
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        match &attribute.meta {
            _ if attribute.path().is_ident("doc") => {}
            Meta::List(list) => self.refer_in_tokens(&list.tokens),
            Meta::NameValue(pair) => self.visit_expr(&pair.value),
            Meta::Path(_) => {}
        }
    }

    /// `pub(in path)` says who may use an item, not what the item uses.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}
}

fn is_constant(pattern: &syn::PatIdent) -> bool {
    pattern.subpat.is_none() && plain(&pattern.ident).starts_with(char::is_uppercase)
}

fn parameters(generics: &syn::Generics) -> HashSet<String> {
    let types = generics.type_params().map(|it| plain(&it.ident));
    types.chain(generics.const_params().map(|it| plain(&it.ident))).collect()
}

/// The variables that a function binds anywhere.
#[derive(Default)]
struct Variables(HashSet<String>);

impl<'ast> Visit<'ast> for Variables {
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        if !is_constant(pattern) {
            self.0.insert(plain(&pattern.ident));
        }
        visit::visit_pat_ident(self, pattern);
    }
}
