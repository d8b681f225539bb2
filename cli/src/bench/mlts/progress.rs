//! The line that says how far a model is.

use std::io::IsTerminal;
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A line on standard error while that is a terminal; gone in the end.
pub(super) struct Progress(Option<ProgressBar>);

impl Progress {
    /// Of this model, which is the first, second and so on of so many.
    pub(super) fn start(model: &Path, (number, of): (usize, usize)) -> Progress {
        Progress(std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
            let name = model.file_stem().unwrap_or(model.as_os_str()).to_string_lossy();
            bar.set_message(format!("model {number} of {of}: {name}"));
            bar
        }))
    }

    /// So many inputs are done, of so many where that is known.
    pub(super) fn show(&mut self, done: u64, of: Option<u64>) {
        let Some(bar) = &self.0 else { return };
        if bar.position() == 0 {
            let known = "{bar:16} {pos}/{len}  {eta} left  {wide_msg}";
            let template = if of.is_some() { known } else { "{spinner} {pos}  {wide_msg}" };
            let style = ProgressStyle::with_template(template);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            if let Some(of) = of {
                bar.set_length(of);
            }
        }
        bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
