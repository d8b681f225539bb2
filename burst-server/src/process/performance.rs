//! The high-performance state, requested of the system while bursts live: a CPU that sleeps deeply, or
//! clocks down, takes longer to answer than most requests take to compute.
//!
//! Each way to request it is a [`Lever`]: a file that is opened at start, before the sandbox closes,
//! and written when the first burst that needs speed begins, and when the last one ends or
//! has been idle for long. The service logs once which lever it is not permitted to use, and shows it in
//! the metrics; nothing fails for it. Closing the file, and so the end of the process, takes the request
//! back by itself where the system offers that.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::panics::lock;

/// Longest content of a control file that is read back.
const CONTENT_MAX: usize = 256;
/// The kernel's own value for "no request" on `/dev/cpu_dma_latency`, in microseconds.
const NO_LATENCY_REQUEST_US: i32 = 2_000_000_000;

/// Paths of the files behind the levers; tests set others.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PerformancePaths {
    /// The device through which a latency of waking CPUs is asked for.
    pub cpu_dma_latency: PathBuf,
    /// Says which control group this process is in.
    pub own_cgroup: PathBuf,
    /// Where control groups lie.
    pub cgroups: PathBuf,
}

impl Default for PerformancePaths {
    fn default() -> Self {
        PerformancePaths {
            cpu_dma_latency: "/dev/cpu_dma_latency".into(),
            own_cgroup: "/proc/self/cgroup".into(),
            cgroups: "/sys/fs/cgroup".into(),
        }
    }
}

/// The high-performance state of a service: requested while at least one burst holds it.
#[derive(Debug)]
pub struct Performance {
    levers: Vec<Lever>,
    holders: Mutex<u64>,
}

/// One way to request the high-performance state.
#[derive(Debug)]
pub struct Lever {
    /// What it is called in log lines and metrics.
    pub name: &'static str,
    control: Result<Control, NotPermitted>,
    held: AtomicBool,
    /// A write failed, which is logged once.
    failed: AtomicBool,
}

#[derive(Debug)]
struct Control {
    file: File,
    engaged: Vec<u8>,
    released: Vec<u8>,
}

/// Why a lever cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum NotPermitted {
    #[error("not permitted: {0}")]
    System(Errno),
    #[error("not available: this system has no such control")]
    Missing,
    #[error("not permitted: the control group has other processes too")]
    SharedGroup,
    #[error("not requested")]
    Off,
}

impl Performance {
    /// Opens what this process may use. Call it before the sandbox closes.
    #[must_use]
    pub fn open(paths: &PerformancePaths) -> Self {
        let levers = vec![
            Lever::new("cpu_dma_latency", open_latency(&paths.cpu_dma_latency)),
            Lever::new("uclamp_min", open_clamp(paths)),
        ];
        for lever in &levers {
            tracing::info!(lever = lever.name, state = %lever.state(), "high-performance state");
        }
        Performance { levers, holders: Mutex::default() }
    }

    /// Never requests anything.
    #[must_use]
    pub fn off() -> Self {
        let lever = |name| Lever::new(name, Err(NotPermitted::Off));
        Performance {
            levers: vec![lever("cpu_dma_latency"), lever("uclamp_min")],
            holders: Mutex::default(),
        }
    }

    /// The ways to request it, for reports.
    #[must_use]
    pub fn levers(&self) -> &[Lever] {
        &self.levers
    }

    /// Requests the high-performance state until the hold is dropped.
    pub(crate) fn hold(self: &Arc<Self>) -> Hold {
        let mut holders = lock(&self.holders);
        *holders += 1;
        if *holders == 1 {
            self.levers.iter().for_each(|lever| lever.set(true));
        }
        drop(holders);
        Hold(Arc::clone(self))
    }
}

/// A request for the high-performance state, withdrawn when dropped.
#[derive(Debug)]
pub(crate) struct Hold(Arc<Performance>);

impl Drop for Hold {
    fn drop(&mut self) {
        let mut holders = lock(&self.0.holders);
        *holders -= 1;
        if *holders == 0 {
            self.0.levers.iter().for_each(|lever| lever.set(false));
        }
    }
}

impl Lever {
    fn new(name: &'static str, control: Result<Control, NotPermitted>) -> Self {
        Lever { name, control, held: AtomicBool::new(false), failed: AtomicBool::new(false) }
    }

    /// Whether the system lets this process use it.
    pub fn is_permitted(&self) -> bool {
        // Relaxed here and below: for reports alone.
        self.control.is_ok() && !self.failed.load(Ordering::Relaxed)
    }

    /// Whether it is requested just now.
    pub fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }

    /// Its state in a few words, for a line of the log.
    #[must_use]
    pub fn state(&self) -> String {
        match &self.control {
            Ok(_) if !self.is_permitted() => "refused when it was used".to_owned(),
            Ok(_) => "permitted".to_owned(),
            Err(reason) => reason.to_string(),
        }
    }

    fn set(&self, on: bool) {
        let Ok(control) = &self.control else { return };
        let bytes = if on { &control.engaged } else { &control.released };
        match rustix::io::pwrite(&control.file, bytes, 0) {
            Ok(_) => self.held.store(on, Ordering::Relaxed),
            Err(errno) => {
                if !self.failed.swap(true, Ordering::Relaxed) {
                    tracing::warn!(lever = self.name, %errno, "cannot request the high-performance state");
                }
            }
        }
    }
}

fn open(path: &Path, flags: OFlags) -> Result<File, NotPermitted> {
    let fd = rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty());
    fd.map(File::from).map_err(|errno| match errno {
        Errno::NOENT | Errno::NODEV | Errno::NXIO => NotPermitted::Missing,
        errno => NotPermitted::System(errno),
    })
}

fn read(file: &File) -> Result<Vec<u8>, NotPermitted> {
    let mut content = vec![0; CONTENT_MAX];
    let length = rustix::io::pread(file, &mut content, 0).map_err(NotPermitted::System)?;
    content.truncate(length);
    Ok(content)
}

/// The request stands while the file is open, with the value that was written last: 0 keeps every CPU
/// out of the sleep states that take time to leave.
fn open_latency(path: &Path) -> Result<Control, NotPermitted> {
    let file = open(path, OFlags::WRONLY)?;
    let released = NO_LATENCY_REQUEST_US.to_ne_bytes().to_vec();
    Ok(Control { file, engaged: 0_i32.to_ne_bytes().to_vec(), released })
}

/// The least clock that the scheduler assumes for all threads of the control group; used only
/// where this process is alone in its group, so that no other process is sped up with it.
fn open_clamp(paths: &PerformancePaths) -> Result<Control, NotPermitted> {
    let own = read(&open(&paths.own_cgroup, OFlags::RDONLY)?)?;
    let own = String::from_utf8_lossy(&own);
    let group = own.lines().find_map(|line| line.strip_prefix("0::/"));
    let folder = paths.cgroups.join(group.ok_or(NotPermitted::System(Errno::NOENT))?);
    let file = open(&folder.join("cpu.uclamp.min"), OFlags::RDWR)?;
    let processes = read(&open(&folder.join("cgroup.procs"), OFlags::RDONLY)?)?;
    let alone = format!("{}\n", std::process::id());
    if processes != alone.as_bytes() {
        return Err(NotPermitted::SharedGroup);
    }
    let released = read(&file)?;
    Ok(Control { file, engaged: b"max\n".to_vec(), released })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Files that stand for the system's.
    fn stand_in(processes: &str) -> (tempfile::TempDir, PerformancePaths) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("mine")).unwrap();
        fs::write(at("latency"), "----").unwrap();
        fs::write(at("own"), "0::/mine\n").unwrap();
        fs::write(at("mine/cpu.uclamp.min"), "0.00\n").unwrap();
        fs::write(at("mine/cgroup.procs"), processes).unwrap();
        let paths = PerformancePaths {
            cpu_dma_latency: at("latency"),
            own_cgroup: at("own"),
            cgroups: folder.path().to_owned(),
        };
        (folder, paths)
    }

    #[test]
    fn the_first_holder_asks_and_the_last_one_takes_it_back() {
        let (_folder, paths) = stand_in(&format!("{}\n", std::process::id()));
        let latency =
            || i32::from_ne_bytes(fs::read(&paths.cpu_dma_latency).unwrap().try_into().unwrap());
        let clamp = || fs::read_to_string(paths.cgroups.join("mine/cpu.uclamp.min")).unwrap();
        let performance = Arc::new(Performance::open(&paths));
        assert!(performance.levers().iter().all(|lever| lever.is_permitted() && !lever.is_held()));
        let first = performance.hold();
        assert_eq!((latency(), clamp().starts_with("max\n")), (0, true));
        let second = performance.hold();
        drop(first);
        assert_eq!(latency(), 0, "one is left");
        assert!(performance.levers().iter().all(Lever::is_held));
        drop(second);
        assert_eq!((latency(), clamp().as_str()), (NO_LATENCY_REQUEST_US, "0.00\n"));
        assert!(!performance.levers().iter().any(Lever::is_held));
    }

    #[test]
    fn a_control_group_with_others_in_it_is_left_alone() {
        let (_folder, paths) = stand_in("1\n2\n");
        let performance = Arc::new(Performance::open(&paths));
        let clamp = &performance.levers()[1];
        assert!(!clamp.is_permitted());
        assert_eq!(clamp.state(), "not permitted: the control group has other processes too");
        let _hold = performance.hold();
        let content = fs::read_to_string(paths.cgroups.join("mine/cpu.uclamp.min")).unwrap();
        assert_eq!(content, "0.00\n");
    }

    #[test]
    fn what_is_not_there_is_said_and_nothing_fails() {
        let nowhere = PathBuf::from("/nonexistent");
        let paths = PerformancePaths {
            cpu_dma_latency: nowhere.join("a"),
            own_cgroup: nowhere.join("b"),
            cgroups: nowhere,
        };
        for performance in [Performance::open(&paths), Performance::off()] {
            let performance = Arc::new(performance);
            let _hold = performance.hold();
            for lever in performance.levers() {
                assert!(!lever.is_permitted() && !lever.is_held());
                assert!(lever.state().starts_with("not "), "{}", lever.state());
                assert!(!lever.state().contains("permitted"), "{}", lever.state());
            }
        }
        // A device that accepts no such value: the write fails, which is logged once.
        let (folder, mut paths) = stand_in("");
        paths.cpu_dma_latency = "/dev/full".into();
        let performance = Arc::new(Performance::open(&paths));
        drop(performance.hold());
        assert!(!performance.levers()[0].is_permitted());
        drop(folder);
    }
}
