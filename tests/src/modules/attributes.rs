//! The two attributes that decide which sources belong to a crate: `#[cfg(…)]` and `#[path = …]`.

use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprLit, Lit, Meta, Token};

/// Whether an item is compiled for tests only: `#[test]`, or a `#[cfg(…)]` that demands `test`.
pub(super) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let demands_test = || {
            let condition = attribute.parse_args::<Meta>();
            condition.is_ok_and(|condition| demands_test(&condition))
        };
        attribute.path().is_ident("test") || (attribute.path().is_ident("cfg") && demands_test())
    })
}

/// Whether a condition can only hold where `test` does.
fn demands_test(condition: &Meta) -> bool {
    let parts = |list: &syn::MetaList| {
        let parts = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
        parts.map(Vec::from_iter).unwrap_or_default()
    };
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => parts(list).iter().any(demands_test),
        Meta::List(list) if list.path.is_ident("any") => {
            let parts = parts(list);
            !parts.is_empty() && parts.iter().all(demands_test)
        }
        Meta::List(_) | Meta::NameValue(_) => false,
    }
}

/// The file that `#[path = "…"]` gives to a module.
pub(super) fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}
