//! From a path to the module that defines what it names: Rust's rules, as far as the scopes of
//! items need them.

use super::tree::{Import, Kinds, Meaning, ModuleId, Names, ROOT, Tree, Visible, Written};

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A module.
    Module(ModuleId),
    /// An item, by the module that defines it and its name there.
    Item { module: ModuleId, name: String },
}

/// Where a path stands.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) module: ModuleId,
    /// The names of the blocks around it, the innermost last.
    pub(super) blocks: &'a [Names],
}

/// Imports that are being followed: one that leads back to itself leads nowhere.
type Following<'a> = Vec<(&'a Import, String)>;

impl Tree {
    /// What a path names, where it is something of this crate: mostly one target, none for a name
    /// of another crate, several where a name is a type here and a function there.
    pub(super) fn resolve(&self, scope: Scope<'_>, path: &Written, kinds: Kinds) -> Vec<Target> {
        let mut targets = self.follow(scope, path, kinds, &mut Vec::new());
        targets.dedup();
        targets
    }

    fn follow<'a>(
        &'a self,
        scope: Scope<'a>,
        path: &Written,
        kinds: Kinds,
        following: &mut Following<'a>,
    ) -> Vec<Target> {
        let Some((first, rest)) = path.segments.split_first() else { return Vec::new() };
        let first_kinds = if rest.is_empty() { kinds } else { Kinds::TYPE };
        let mut found = match first.as_str() {
            _ if path.absolute => return Vec::new(),
            "crate" => vec![Target::Module(ROOT)],
            "self" => vec![Target::Module(scope.module)],
            "super" => vec![Target::Module(self.above(scope.module))],
            name => self.in_scope(scope, name, first_kinds, following),
        };
        for (index, name) in rest.iter().enumerate() {
            let kinds = if index + 1 == rest.len() { kinds } else { Kinds::TYPE };
            let mut next = Vec::new();
            for target in found {
                match target {
                    Target::Module(module) if name == "super" => {
                        next.push(Target::Module(self.above(module)));
                    }
                    Target::Module(module) => {
                        let inner = self.member(module, name, kinds, scope.module, following);
                        // A name that only a macro's expansion binds is still this module's.
                        let unseen = Target::Item { module, name: name.clone() };
                        next.extend(if inner.is_empty() { vec![unseen] } else { inner });
                    }
                    // A variant, an associated function: where its type is.
                    item @ Target::Item { .. } => next.push(item),
                }
            }
            found = next;
        }
        found
    }

    fn above(&self, module: ModuleId) -> ModuleId {
        self.modules[module].parent.unwrap_or(ROOT)
    }

    /// What a name means where it stands alone or first.
    fn in_scope<'a>(
        &'a self,
        scope: Scope<'a>,
        name: &str,
        kinds: Kinds,
        following: &mut Following<'a>,
    ) -> Vec<Target> {
        for depth in (0..scope.blocks.len()).rev() {
            let inner = Scope { module: scope.module, blocks: &scope.blocks[..=depth] };
            let found = self.among(&scope.blocks[depth], inner, name, kinds, None, following);
            if !found.is_empty() {
                return found;
            }
        }
        let found = self.member(scope.module, name, kinds, scope.module, following);
        if found.is_empty() && kinds.meets(Kinds::MACRO) {
            return self.textual_macro(scope.module, name);
        }
        found
    }

    /// A macro that is in scope by where it stands: in a module above, or under `#[macro_use]`.
    fn textual_macro(&self, module: ModuleId, name: &str) -> Vec<Target> {
        let above = self.line(module).into_iter().rev();
        let mut modules = above.chain(self.macro_use.iter().copied());
        let defines = |module: &ModuleId| {
            self.modules[*module].names.of(name).iter().any(|binding| {
                matches!(binding.meaning, Meaning::Item { kinds, .. } if kinds == Kinds::MACRO)
            })
        };
        let found = modules.find(defines);
        found.map(|module| Target::Item { module, name: name.to_owned() }).into_iter().collect()
    }

    /// What `module::name` is for one who looks from `viewer`.
    fn member<'a>(
        &'a self,
        module: ModuleId,
        name: &str,
        kinds: Kinds,
        viewer: ModuleId,
        following: &mut Following<'a>,
    ) -> Vec<Target> {
        let names = &self.modules[module].names;
        let scope = Scope { module, blocks: &[] };
        self.among(names, scope, name, kinds, Some(viewer), following)
    }

    /// What `names`, which stand in `scope`, bind to a name. Globs count where nothing else does.
    fn among<'a>(
        &'a self,
        names: &'a Names,
        scope: Scope<'a>,
        name: &str,
        kinds: Kinds,
        viewer: Option<ModuleId>,
        following: &mut Following<'a>,
    ) -> Vec<Target> {
        let sees = |visible| viewer.is_none_or(|viewer| self.is_visible(visible, viewer));
        let mut found = Vec::new();
        for binding in names.of(name).iter().filter(|binding| sees(binding.visible)) {
            match &binding.meaning {
                Meaning::Item { module, kinds: own } if own.meets(kinds) => {
                    found.push(Target::Item { module: *module, name: name.to_owned() });
                }
                Meaning::Module(module) if kinds.meets(Kinds::TYPE) => {
                    found.push(Target::Module(*module));
                }
                Meaning::Item { .. } | Meaning::Module(_) => {}
                Meaning::Import(import) => {
                    found.extend(self.imported(import, scope, name, kinds, following));
                }
            }
        }
        if found.is_empty() {
            for glob in names.globs.iter().filter(|glob| sees(glob.visible)) {
                found.extend(self.through_glob(glob, scope, name, kinds, following));
            }
        }
        found
    }

    fn imported<'a>(
        &'a self,
        import: &'a Import,
        scope: Scope<'a>,
        name: &str,
        kinds: Kinds,
        following: &mut Following<'a>,
    ) -> Vec<Target> {
        if !begin(following, import, name) {
            return Vec::new();
        }
        let mut found = self.follow(scope, &import.path, kinds, following);
        if found.is_empty() && self.follow(scope, &import.path, Kinds::ANY, following).is_empty() {
            // Of another crate: what brings it into this one stands for it.
            found.push(Target::Item { module: scope.module, name: name.to_owned() });
        }
        following.pop();
        found
    }

    fn through_glob<'a>(
        &'a self,
        glob: &'a Import,
        scope: Scope<'a>,
        name: &str,
        kinds: Kinds,
        following: &mut Following<'a>,
    ) -> Vec<Target> {
        if !begin(following, glob, name) {
            return Vec::new();
        }
        let mut found = Vec::new();
        for target in self.follow(scope, &glob.path, Kinds::TYPE, following) {
            if let Target::Module(module) = target {
                found.extend(self.member(module, name, kinds, scope.module, following));
            }
        }
        following.pop();
        found
    }

    fn is_visible(&self, visible: Visible, viewer: ModuleId) -> bool {
        match visible {
            Visible::Everywhere => true,
            Visible::Within(module) => self.line(viewer).contains(&module),
        }
    }
}

fn begin<'a>(following: &mut Following<'a>, import: &'a Import, name: &str) -> bool {
    if following.iter().any(|(open, of)| std::ptr::eq(*open, import) && of == name) {
        return false;
    }
    following.push((import, name.to_owned()));
    true
}
