//! What the machine has for this process: the limits of a service are made from it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::process::{Resource, getrlimit};

/// What the machine has for this process, where a control group or a limit of the process gives it
/// less, that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Processors that it may run on.
    pub processors: u64,
    /// Processes and threads.
    pub tasks: u64,
    /// File descriptors.
    pub descriptors: u64,
    /// Mappings of one process.
    pub mappings: u64,
    /// Bytes of address space.
    pub address_space_bytes: u64,
}

/// What is assumed where the system does not say how much memory there is.
const UNKNOWN_MEMORY: u64 = 2 << 30;
/// The kernel's own default.
const UNKNOWN_MAPPINGS: u64 = 65_530;
/// More than any machine has memory: control groups give a number like this for no limit.
const NO_LIMIT: u64 = 1 << 62;

/// Files that say what there is, below `/` or, in tests, below another folder.
struct Files<'a>(&'a Path);

impl Machine {
    /// This machine, as it was when this was first asked for. Ask before the process locks itself
    /// in: afterwards no file can be read.
    #[must_use]
    pub fn here() -> &'static Machine {
        static HERE: OnceLock<Machine> = OnceLock::new();
        HERE.get_or_init(|| Machine::read(Path::new("/")))
    }

    fn read(root: &Path) -> Machine {
        let files = Files(root);
        let limit = |resource| getrlimit(resource).current.unwrap_or(u64::MAX);
        let least = |values: Vec<u64>| values.into_iter().min();
        let memory = files.total_memory().unwrap_or(UNKNOWN_MEMORY);
        let of_groups =
            least(files.group_limits("memory", &["memory.max", "memory.limit_in_bytes"]));
        let tasks = least(files.group_limits("pids", &["pids.max"]));
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Machine {
            memory_bytes: memory.min(of_groups.unwrap_or(u64::MAX)),
            processors: processors as u64,
            tasks: limit(Resource::Nproc).min(tasks.unwrap_or(u64::MAX)),
            descriptors: limit(Resource::Nofile),
            mappings: files.number("proc/sys/vm/max_map_count").unwrap_or(UNKNOWN_MAPPINGS),
            address_space_bytes: limit(Resource::As),
        }
    }
}

impl Files<'_> {
    fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        fs::read_to_string(self.0.join(path)).ok()
    }

    fn number(&self, path: impl AsRef<Path>) -> Option<u64> {
        self.text(path)?.trim().parse().ok()
    }

    fn total_memory(&self) -> Option<u64> {
        let text = self.text("proc/meminfo")?;
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
        kib.checked_mul(1024)
    }

    /// What the control groups of this process, from its own up to the root, allow of something that
    /// the given controller limits in one of these files.
    fn group_limits(&self, controller: &str, files: &[&str]) -> Vec<u64> {
        let mut limits = Vec::new();
        for folder in self.group_folders(controller) {
            for file in files {
                let limit = self.number(folder.join(file));
                limits.extend(limit.filter(|limit| *limit < NO_LIMIT));
            }
        }
        limits
    }

    /// The folders of the groups with this controller that this process is in: of the one hierarchy of
    /// version 2, and of the controller's own of version 1.
    fn group_folders(&self, controller: &str) -> Vec<PathBuf> {
        let text = self.text("proc/self/cgroup").unwrap_or_default();
        let mut folders = Vec::new();
        for line in text.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
            let mounts: &[&str] = match controllers {
                "" => &["sys/fs/cgroup", "sys/fs/cgroup/unified"],
                list if list.split(',').any(|one| one == controller) => &["sys/fs/cgroup"],
                _ => continue,
            };
            for mount in mounts {
                let mount = match controllers {
                    "" => PathBuf::from(mount),
                    _ => Path::new(mount).join(controllers),
                };
                // Within a container the path may be one of the machine's: its mount then shows this
                // group at the top, which is among the ancestors here.
                let path = Path::new(path.trim_start_matches('/'));
                folders.extend(path.ancestors().map(|group| mount.join(group)));
            }
        }
        folders
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// A file system with these files.
    fn files(contents: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in contents {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        folder
    }

    #[test]
    fn the_least_of_the_memory_and_of_every_group_above_this_process_counts() {
        let meminfo = ("proc/meminfo", "MemFree: 1 kB\nMemTotal:       16777216 kB\n");
        let read = |more: &[(&str, &str)]| {
            let folder = files(&[&[meminfo], more].concat());
            Machine::read(folder.path())
        };
        assert_eq!(read(&[]).memory_bytes, 16 * GIB);
        let unified = read(&[
            ("proc/self/cgroup", "0::/system.slice/burst.service\n"),
            ("sys/fs/cgroup/system.slice/memory.max", "4294967296\n"),
            ("sys/fs/cgroup/system.slice/burst.service/memory.max", "max\n"),
            ("sys/fs/cgroup/system.slice/burst.service/pids.max", "77\n"),
        ]);
        assert_eq!((unified.memory_bytes, unified.tasks), (4 * GIB, 77));
        let separate = read(&[
            ("proc/self/cgroup", "9:cpu,cpuacct:/\n4:memory:/jobs/one\n2:pids:/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/jobs/one/memory.limit_in_bytes", "2147483648\n"),
            ("sys/fs/cgroup/pids/pids.max", "55\n"),
        ]);
        assert_eq!((separate.memory_bytes, separate.tasks), (2 * GIB, 55));
        let in_a_container = read(&[
            ("proc/self/cgroup", "0::/of/the/machine\n"),
            ("sys/fs/cgroup/memory.max", "1073741824\n"),
        ]);
        assert_eq!(in_a_container.memory_bytes, GIB);
    }

    #[test]
    fn what_the_system_does_not_tell_is_assumed() {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine::read(folder.path());
        assert_eq!((machine.memory_bytes, machine.mappings), (UNKNOWN_MEMORY, UNKNOWN_MAPPINGS));
        assert!(machine.processors > 0 && machine.descriptors > 0);
        let files =
            files(&[("proc/meminfo", "nothing of use"), ("proc/self/cgroup", "rubbish\n:::\n")]);
        assert_eq!(Machine::read(files.path()).memory_bytes, UNKNOWN_MEMORY);
    }
}
