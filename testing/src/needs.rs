//! What a test may need, and what is said where it is not there.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

/// Why a test cannot run here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    what: String,
    required: bool,
}

impl Missing {
    /// A need of the test's own: `what` completes "needs ...".
    pub fn new(what: impl fmt::Display) -> Missing {
        Missing { what: what.to_string(), required: false }
    }

    /// Whether a run that lacks this fails, as it was told to.
    pub(crate) fn is_required(&self) -> bool {
        self.required
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "needs {}", self.what)?;
        if self.required {
            write!(f, "; BURST_REQUIRE_SHARED asks for it")?;
        }
        Ok(())
    }
}

/// A folder or file of the shared data: in `BURST_SHARED`, else in `../shared` beside the repository.
/// `""` is the whole of it.
///
/// # Errors
/// It is not there. With `BURST_REQUIRE_SHARED=1` the test then fails and is not ignored.
pub fn shared(path: &str) -> Result<PathBuf, Missing> {
    let root = std::env::var_os("BURST_SHARED").map_or_else(beside_the_repository, PathBuf::from);
    let required = std::env::var_os("BURST_REQUIRE_SHARED");
    shared_in(&root, path, required.is_some_and(|value| value != "0" && !value.is_empty()))
}

fn beside_the_repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared")
}

pub(crate) fn shared_in(root: &Path, path: &str, required: bool) -> Result<PathBuf, Missing> {
    // Without a path nothing is joined: that would end the root with a slash.
    let found = if path.is_empty() { root.to_path_buf() } else { root.join(path) };
    if found.exists() {
        return Ok(found);
    }
    let name =
        if root == beside_the_repository() { Path::new("../shared").join(path) } else { found };
    let what = format!("{}, which is not here (BURST_SHARED says where)", name.display());
    Err(Missing { what, required })
}

/// A program of the search path.
///
/// # Errors
/// It is not installed.
pub fn program(name: &str) -> Result<PathBuf, Missing> {
    program_in(&std::env::var_os("PATH").unwrap_or_default(), name)
}

pub(crate) fn program_in(search_path: &OsStr, name: &str) -> Result<PathBuf, Missing> {
    let candidates = std::env::split_paths(search_path).map(|folder| folder.join(name));
    let mut found = candidates.filter(|path| path.is_file());
    found.next().ok_or_else(|| Missing::new(format!("{name}, which is not installed")))
}

/// This process may run on two CPUs at least.
#[derive(Debug, Clone, Copy)]
pub struct TwoCpus(());

/// Two CPUs that this process may run on.
///
/// # Errors
/// There is one.
pub fn two_cpus() -> Result<TwoCpus, Missing> {
    two_of(std::thread::available_parallelism().map_or(1, usize::from))
}

pub(crate) fn two_of(cpus: usize) -> Result<TwoCpus, Missing> {
    if cpus < 2 {
        return Err(Missing::new(format!("two CPUs, and this process may run on {cpus}")));
    }
    Ok(TwoCpus(()))
}

/// This process may become any user.
#[derive(Debug, Clone, Copy)]
pub struct Root(());

/// The right to start processes of other users.
///
/// # Errors
/// This process is not root's.
pub fn root() -> Result<Root, Missing> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    root_of(&status)
}

/// The same by what `/proc/self/status` says.
pub(crate) fn root_of(status: &str) -> Result<Root, Missing> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    match line.split_whitespace().nth(1) {
        Some("0") => Ok(Root(())),
        _ => Err(Missing::new("root, to be two users")),
    }
}
