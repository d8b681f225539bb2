//! Paths in the tokens of a macro call, a macro's definition or an attribute.
//!
//! Such tokens have no grammar that could be parsed, so a path is what looks like one: identifiers
//! with `::` between them, groups of a `use` line unfolded. An identifier alone counts when it can
//! only be a name of an item: it begins with a capital letter, or is called.

use proc_macro2::{Delimiter, Ident, Spacing, Span, TokenStream, TokenTree};

use super::tree::{Kinds, Written, plain};

/// A path in tokens.
pub(super) struct TokenPath {
    pub(super) path: Written,
    pub(super) kinds: Kinds,
    pub(super) span: Span,
}

/// Every path in these tokens, in groups too.
pub(super) fn paths(tokens: TokenStream) -> Vec<TokenPath> {
    let mut found = Vec::new();
    scan(tokens, &mut found);
    found
}

fn scan(tokens: TokenStream, found: &mut Vec<TokenPath>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Group(group) => {
                scan(group.stream(), found);
                at += 1;
            }
            TokenTree::Ident(first) => {
                let chain = Chain::at(&tokens, at, first);
                let end = chain.end;
                if !continues(&tokens[..at]) {
                    chain.report(&tokens, first.span(), found);
                }
                at = end;
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => at += 1,
        }
    }
}

/// Identifiers with `::` between them.
struct Chain {
    segments: Vec<String>,
    absolute: bool,
    /// Index of the first token behind it.
    end: usize,
}

impl Chain {
    fn at(tokens: &[TokenTree], start: usize, first: &Ident) -> Chain {
        let mut segments = vec![plain(first)];
        let mut end = start + 1;
        while let (true, Some(TokenTree::Ident(next))) =
            (is_colons(tokens, end), tokens.get(end + 2))
        {
            segments.push(plain(next));
            end += 3;
        }
        Chain { segments, absolute: start >= 2 && is_colons(tokens, start - 2), end }
    }

    fn report(self, tokens: &[TokenTree], span: Span, found: &mut Vec<TokenPath>) {
        let Chain { segments, absolute, end } = self;
        if let (true, Some(TokenTree::Group(group))) = (is_colons(tokens, end), tokens.get(end + 2))
            && group.delimiter() == Delimiter::Brace
        {
            return unfold(&segments, absolute, group.stream(), found);
        }
        let is_macro = is_punct(tokens.get(end), '!') && !is_punct(tokens.get(end + 1), '=');
        let kinds = if is_macro { Kinds::MACRO } else { Kinds::TYPE_OR_VALUE };
        let [only] = segments.as_slice() else {
            return found.push(TokenPath { path: Written { segments, absolute }, kinds, span });
        };
        let called = matches!(tokens.get(end), Some(TokenTree::Group(group))
            if group.delimiter() == Delimiter::Parenthesis);
        let keyword = matches!(only.as_str(), "crate" | "self" | "super" | "Self");
        if !keyword && (is_macro || called || only.starts_with(char::is_uppercase)) {
            found.push(TokenPath { path: Written { segments, absolute }, kinds, span });
        }
    }
}

/// `before::{ group }` of a `use` line.
fn unfold(before: &[String], absolute: bool, group: TokenStream, found: &mut Vec<TokenPath>) {
    let mut inner = Vec::new();
    let mut starts_path = true;
    let tokens: Vec<TokenTree> = group.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        if let (true, TokenTree::Ident(first)) = (starts_path, token) {
            let mut chain = Chain::at(&tokens, at, first);
            chain.segments.retain(|segment| segment != "self");
            chain.segments.splice(0..0, before.iter().cloned());
            chain.absolute = absolute;
            chain.report(&tokens, first.span(), &mut inner);
        }
        starts_path = matches!(token, TokenTree::Punct(comma) if comma.as_char() == ',');
    }
    for path in &mut inner {
        path.kinds = Kinds::ANY;
    }
    found.append(&mut inner);
}

/// Whether what follows these tokens is not the start of a path: a field or a method, a lifetime,
/// or the rest of a path that began with something else.
fn continues(before: &[TokenTree]) -> bool {
    let last = before.len().checked_sub(1);
    let Some(TokenTree::Punct(mark)) = last.map(|last| &before[last]) else { return false };
    match mark.as_char() {
        '\'' => true,
        // `a..b` has a range before its `b`, `a.b` has not.
        '.' => !(before.len() >= 2 && is_punct(before.get(before.len() - 2), '.')),
        ':' if before.len() >= 2 && is_colons(before, before.len() - 2) => {
            // `<T as Trait>::name` goes on; `::name` at a start does not.
            matches!(
                before.len().checked_sub(3).map(|at| &before[at]),
                Some(TokenTree::Punct(mark)) if mark.as_char() == '>'
            )
        }
        _ => false,
    }
}

fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    let joint = matches!(tokens.get(at), Some(TokenTree::Punct(mark))
        if mark.as_char() == ':' && mark.spacing() == Spacing::Joint);
    joint && is_punct(tokens.get(at + 1), ':')
}

fn is_punct(token: Option<&TokenTree>, mark: char) -> bool {
    matches!(token, Some(TokenTree::Punct(found)) if found.as_char() == mark)
}
