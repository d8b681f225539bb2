//! Where answers come from: files of the system below a root, and calls of the kernel. Tests make up both.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use burst_driver::Isa;
use rustix::io::Errno;

/// Longest file that is read: what the kernel says of some thousand processors fits in.
const FILE_MAX: u64 = 8 << 20;
/// Most entries of a folder that are looked at.
const ENTRIES_MAX: usize = 4096;
/// Most processors that a list may name: more than the kernel can have.
const CPUS_MAX: usize = 8192;

/// A machine that can be asked.
pub(super) struct Machine<'a> {
    /// Below it lie `proc`, `sys` and `dev`.
    pub(super) root: &'a Path,
    pub(super) calls: &'a dyn Calls,
}

/// What no file tells.
pub(super) trait Calls {
    /// Whether the kernel has `futex_waitv`.
    fn futex_waitv(&self) -> Result<(), Errno>;
    /// Whether shared memory can be sealed against further writers.
    fn seal_future_write(&self) -> Result<(), String>;
    /// The newest interface of landlock that the kernel has, 0 for none.
    fn landlock(&self) -> u8;
    /// Whether a socket tells a descriptor of its peer's process.
    fn peer_pidfd(&self) -> Result<(), Errno>;
    /// Whether a socket can be told to take no descriptors.
    fn pass_rights(&self) -> Result<(), Errno>;
    /// What one look at the monotonic clock takes.
    fn clock_cost_ns(&self) -> u64;
    /// What it takes that two threads wake each other, once each.
    fn wake_cost_ns(&self) -> u64;
    /// What two cache lines, one each way, take between two CPUs, in nanoseconds; `None` where it cannot be measured.
    fn two_lines_ns(&self, cpus: [usize; 2]) -> Option<f64>;
    /// What the driver's kernels may use.
    fn isa(&self) -> Isa;
    /// Whether this process may read and write a device.
    fn may_use(&self, path: &Path) -> Result<(), Errno>;
}

impl Machine<'_> {
    fn below(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// What a file holds, without white space around it; else why it cannot be read.
    pub(super) fn read(&self, path: &str) -> Result<String, String> {
        let mut text = String::new();
        let read = File::open(self.below(path))
            .and_then(|file| file.take(FILE_MAX).read_to_string(&mut text));
        match read {
            Ok(_) => Ok(text.trim().to_owned()),
            Err(error) => Err(format!("cannot read {path}: {}", reason(&error))),
        }
    }

    /// A whole number that a file holds.
    pub(super) fn number(&self, path: &str) -> Result<u64, String> {
        let text = self.read(path)?;
        text.parse().map_err(|_| format!("{path} holds no number"))
    }

    /// Names in a folder, sorted; else why they cannot be read.
    pub(super) fn list(&self, path: &str) -> Result<Vec<String>, String> {
        let entries = std::fs::read_dir(self.below(path))
            .map_err(|error| format!("cannot read {path}: {}", reason(&error)))?;
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.ok().map(|entry| entry.file_name().to_string_lossy().into_owned())
        };
        let mut names: Vec<String> = entries.filter_map(name).take(ENTRIES_MAX).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Whether this process may read and write a device.
    pub(super) fn may_use(&self, path: &str) -> Result<(), Errno> {
        self.calls.may_use(&self.below(path))
    }

    /// What a line `name: value` of a file says.
    pub(super) fn line_of(&self, path: &str, name: &str) -> Result<String, String> {
        let text = self.read(path)?;
        let value = text.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            (found.trim() == name).then(|| value.trim().to_owned())
        });
        value.ok_or_else(|| format!("{path} has no line {name}"))
    }

    /// Processors that are switched on.
    pub(super) fn online(&self) -> Result<Vec<usize>, String> {
        self.cpus("/sys/devices/system/cpu/online", self.read("/sys/devices/system/cpu/online")?)
    }

    /// Processors that this process may run on.
    pub(super) fn usable(&self) -> Result<Vec<usize>, String> {
        const STATUS: &str = "/proc/self/status";
        let online = self.online()?;
        let mut allowed = self.cpus(STATUS, self.line_of(STATUS, "Cpus_allowed_list")?)?;
        allowed.retain(|cpu| online.contains(cpu));
        Ok(allowed)
    }

    fn cpus(&self, path: &str, text: String) -> Result<Vec<usize>, String> {
        cpu_list(&text).ok_or_else(|| format!("{path} holds no list of CPUs: {text}"))
    }

    /// Whether a hypervisor says that this is a virtual machine.
    pub(super) fn is_virtual(&self) -> Result<bool, String> {
        let cpuinfo = self.read("/proc/cpuinfo")?;
        let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
        Ok(flags.is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor")))
    }

    /// Folders of the control groups with this controller that this process is in, from its own up to the
    /// root: of version 2, and of the controller's own hierarchy of version 1.
    pub(super) fn groups(&self, controller: &str) -> Result<Vec<String>, String> {
        let text = self.read("/proc/self/cgroup")?;
        let mut folders = Vec::new();
        for line in text.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
            let mounts = match controllers {
                "" => vec!["/sys/fs/cgroup".to_owned(), "/sys/fs/cgroup/unified".to_owned()],
                list if list.split(',').any(|one| one == controller) => {
                    vec![format!("/sys/fs/cgroup/{list}")]
                }
                _ => continue,
            };
            let path = Path::new(path.trim_start_matches('/'));
            for mount in mounts {
                let group = |group: &Path| format!("{mount}/{}", group.display());
                folders.extend(path.ancestors().map(group));
            }
        }
        Ok(folders.into_iter().map(|folder| folder.trim_end_matches('/').to_owned()).collect())
    }
}

/// Why, without the number that the system has for it.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// The kernel's form of a list of CPUs, `0-3,8`; `None` for what is none, or names more than there can be.
pub(super) fn cpu_list(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last >= CPUS_MAX || cpus.len() >= CPUS_MAX {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::super::testing::MadeUp;
    use super::*;

    #[test]
    fn lists_of_cpus_are_understood_and_nonsense_is_none() {
        assert_eq!(cpu_list("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(cpu_list("5"), Some(vec![5]));
        for nonsense in ["", "x", "3-", "4-2", "0-99999999", "1,,2"] {
            assert_eq!(cpu_list(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn groups_of_both_versions_are_found_from_the_own_one_up() {
        let made_up =
            MadeUp::without_files().file("proc/self/cgroup", "9:cpu,cpuacct:/a/b\n0::/c\n");
        let groups = made_up.look(|machine| machine.groups("cpu")).unwrap();
        let of_cpu = ["/a/b", "/a", ""].map(|path| format!("/sys/fs/cgroup/cpu,cpuacct{path}"));
        let unified = ["", "/unified"].map(|mount| format!("/sys/fs/cgroup{mount}/c"));
        assert_eq!(groups[..3], of_cpu);
        assert!(unified.iter().all(|folder| groups.contains(folder)), "{groups:?}");
        let none = made_up.look(|machine| machine.groups("pids")).unwrap();
        assert!(!none.iter().any(|folder| folder.contains("cpu,")), "{none:?}");
    }

    #[test]
    fn what_cannot_be_read_says_which_file_and_why() {
        let made_up = MadeUp::without_files().file("sys/devices/system/cpu/online", "all\n");
        let read = made_up.look(|machine| machine.read("/proc/loadavg"));
        assert_eq!(read, Err("cannot read /proc/loadavg: No such file or directory".to_owned()));
        let online = made_up.look(|machine| machine.online());
        let said = "/sys/devices/system/cpu/online holds no list of CPUs: all";
        assert_eq!(online, Err(said.to_owned()));
    }
}
