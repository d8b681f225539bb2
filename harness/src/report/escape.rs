//! Text as HTML has it.

/// The text, with nothing in it that a browser would take for an element.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
