//! Circles among the modules below one module.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::references::Reference;
use super::tree::{ModuleId, Tree};

/// The arrows among the modules below one module, each with the paths that make it.
type Arrows<'a> = BTreeMap<(ModuleId, ModuleId), Vec<&'a Reference>>;

/// Every circle, described for the person who has to break it.
pub(super) fn circles(tree: &Tree, references: &[Reference]) -> Vec<String> {
    let mut families: BTreeMap<ModuleId, Arrows<'_>> = BTreeMap::new();
    for reference in references {
        if let Some((family, arrow)) = arrow(tree, reference) {
            families.entry(family).or_default().entry(arrow).or_default().push(reference);
        }
    }
    let mut found = Vec::new();
    for (family, arrows) in &families {
        let circles: BTreeSet<Circle> =
            arrows.keys().filter_map(|arrow| shortest_through(arrows, *arrow)).collect();
        found.extend(circles.iter().map(|circle| describe(tree, *family, circle, arrows)));
    }
    found
}

/// The arrow that a reference draws, and the module whose children it connects: the nearest one
/// that holds both ends. No arrow when one end is above the other.
fn arrow(tree: &Tree, reference: &Reference) -> Option<(ModuleId, (ModuleId, ModuleId))> {
    let (from, to) = (tree.line(reference.from), tree.line(reference.to));
    let common = from.iter().zip(&to).take_while(|(from, to)| from == to).count();
    Some((from[common - 1], (*from.get(common)?, *to.get(common)?)))
}

/// Modules, each with an arrow to the next and the last with one to the first.
///
/// Circles of the same modules in the same order are equal: each begins with its least module.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Circle {
    /// First, so that short circles are listed first.
    length: usize,
    modules: Vec<ModuleId>,
}

/// The shortest circle that an arrow is a part of.
fn shortest_through(arrows: &Arrows<'_>, (from, to): (ModuleId, ModuleId)) -> Option<Circle> {
    let mut reached_from = BTreeMap::from([(to, to)]);
    let mut open = VecDeque::from([to]);
    while let Some(at) = open.pop_front() {
        if at == from {
            let mut modules = vec![at];
            while *modules.last().expect("not empty") != to {
                modules.push(reached_from[modules.last().expect("not empty")]);
            }
            modules.reverse();
            let least = (0..modules.len()).min_by_key(|index| modules[*index]).unwrap_or(0);
            modules.rotate_left(least);
            return Some(Circle { length: modules.len(), modules });
        }
        for (_, next) in arrows.range((at, 0)..=(at, ModuleId::MAX)).map(|(arrow, _)| *arrow) {
            reached_from.entry(next).or_insert_with(|| {
                open.push_back(next);
                at
            });
        }
    }
    None
}

/// The circle's modules, then a line for each arrow: the first path that draws it, and what else
/// paths along it name.
fn describe(tree: &Tree, family: ModuleId, circle: &Circle, arrows: &Arrows<'_>) -> String {
    let name = |module: ModuleId| tree.modules[module].name.as_str();
    let next = |index: usize| circle.modules[(index + 1) % circle.length];
    let round: Vec<&str> =
        circle.modules.iter().chain(&circle.modules[..1]).map(|module| name(*module)).collect();
    let mut text = format!("in {}: {}", tree.path(family), round.join(" -> "));
    for (index, module) in circle.modules.iter().enumerate() {
        let (first, others) = once_each(&arrows[&(*module, next(index))]);
        text += &format!(
            "\n  {} -> {}: {}: `{}` is {}",
            name(*module),
            name(next(index)),
            file_and_line(tree, first),
            first.path,
            item(tree, first),
        );
        for other in others {
            text += &format!("; also {} at {}", item(tree, other), file_and_line(tree, other));
        }
    }
    text
}

/// The first reference, and the first one to each other item.
fn once_each<'a>(references: &[&'a Reference]) -> (&'a Reference, Vec<&'a Reference>) {
    let mut seen = BTreeSet::new();
    let mut firsts =
        references.iter().copied().filter(|reference| seen.insert((reference.to, &reference.item)));
    let first = firsts.next().expect("an arrow is drawn by a reference");
    (first, firsts.collect())
}

/// What a reference names, such as `crate::a::Item`, or `crate::a` for the module itself.
fn item(tree: &Tree, reference: &Reference) -> String {
    let module = tree.path(reference.to);
    if reference.item.is_empty() { module } else { format!("{module}::{}", reference.item) }
}

/// Where a reference stands, such as `src/a.rs:12`.
fn file_and_line(tree: &Tree, reference: &Reference) -> String {
    format!("{}:{}", tree.modules[reference.from].file.display(), reference.line)
}
