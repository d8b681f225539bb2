//! `--state`, `--no-cache`: the key of compilations that clients keep in files.

use std::path::PathBuf;

use anyhow::{Context, Result};
use burst_driver::CacheKey;
use burst_server::StateFolder;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CacheArgs {
    /// Folder for the key that makes compilations in files of clients this service's. Default:
    /// $STATE_DIRECTORY, else $XDG_STATE_HOME/burst, else ~/.local/state/burst. A driver process of one
    /// client has none unless it is named.
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// Keep no compilations in files of clients, and no key.
    #[arg(long, conflicts_with = "state")]
    no_cache: bool,
}

impl CacheArgs {
    /// The key, where there is to be one. A folder that cannot be used is a reason to go without, unless
    /// it was named; a key that must not be used is none.
    pub(crate) fn key(&self, private: bool) -> Result<Option<CacheKey>> {
        if self.no_cache || (private && self.state.is_none()) {
            return Ok(None);
        }
        let named = self.state.as_ref().map(StateFolder::new);
        let Some(folder) = named.or_else(StateFolder::of_environment) else {
            tracing::warn!(
                "no place for a key (STATE_DIRECTORY, XDG_STATE_HOME, HOME are not set): compilations are not kept"
            );
            return Ok(None);
        };
        match folder.key() {
            Ok(key) => Ok(Some(CacheKey::new(key))),
            Err(error) if self.state.is_none() && !error.is_refusal() => {
                tracing::warn!(%error, "no place for a key: compilations are not kept");
                Ok(None)
            }
            Err(error) => Err(error).context(
                "the key of kept compilations cannot be used; --no-cache goes without them",
            ),
        }
    }
}
