//! Who is told of what is lost.

use std::fmt;
use std::sync::Arc;

use super::loss::Loss;

/// Called with each loss; by default nobody.
#[derive(Clone, Default)]
pub(super) struct Listener(Option<Arc<Listening>>);

/// Is told of each loss.
type Listening = dyn Fn(&Loss) + Send + Sync;

impl Listener {
    pub(super) fn new(listen: impl Fn(&Loss) + Send + Sync + 'static) -> Self {
        Listener(Some(Arc::new(listen)))
    }

    pub(super) fn tell(&self, losses: &[Loss]) {
        if let Some(listen) = &self.0 {
            losses.iter().for_each(|loss| listen(loss));
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Listener" } else { "nobody" })
    }
}
