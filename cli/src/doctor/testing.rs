//! Machines that tests make up: files below a folder, and a kernel that answers as it is told.

use std::path::{Path, PathBuf};

use burst_driver::Isa;
use rustix::io::Errno;
use tempfile::TempDir;

use super::machine::{Calls, Machine};

/// A machine with four CPUs where everything is as it should be, until something is changed.
pub(super) struct MadeUp {
    root: TempDir,
    kernel: Kernel,
}

struct Kernel {
    answer: Result<(), Errno>,
    landlock: u8,
    clock_ns: u64,
    wakes_ns: u64,
    lines_ns: fn([usize; 2]) -> Option<f64>,
    isa: Isa,
    /// Nothing may be used, or one path may not.
    refused: Option<(Option<PathBuf>, Errno)>,
}

const FILES: &[(&str, &str)] = &[
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
    ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc kvm-clock hpet\n"),
    ("sys/devices/system/cpu/online", "0-3\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "0\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state0/disable", "0\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "2\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state1/disable", "0\n"),
    ("proc/self/status", "Name:\tburst\nCpus_allowed_list:\t0-7\nSeccomp:\t0\n"),
    ("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu avx2\n"),
    ("proc/stat", "cpu  1000 0 1000 9000 0 0 0 0 0 0\n"),
    ("proc/loadavg", "0.50 0.40 0.30 1/100 7\n"),
    ("proc/meminfo", "MemTotal:       16777216 kB\nMemAvailable:    8388608 kB\n"),
    ("proc/self/cgroup", "0::/\n"),
    (
        "proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units\n\
         Max processes             96365                96365                processes\n\
         Max open files            1024                 524288               files\n\
         Max address space         unlimited            unlimited            bytes\n",
    ),
    ("proc/sys/kernel/osrelease", "6.12.1\n"),
    ("proc/sys/kernel/seccomp/actions_avail", "kill_process kill_thread trap errno allow\n"),
    ("proc/sys/vm/max_map_count", "65530\n"),
];

impl MadeUp {
    pub(super) fn new() -> MadeUp {
        let with_files = FILES
            .iter()
            .fold(MadeUp::without_files(), |made_up, (path, text)| made_up.file(path, text));
        (0..4).fold(with_files, |made_up, cpu| {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}");
            made_up
                .file(&format!("{folder}/topology/thread_siblings_list"), &format!("{cpu}\n"))
                .file(&format!("{folder}/cpufreq/scaling_governor"), "performance\n")
        })
    }

    /// Files tell nothing; the kernel can do everything.
    pub(super) fn without_files() -> MadeUp {
        let kernel = Kernel {
            answer: Ok(()),
            landlock: 6,
            clock_ns: 25,
            wakes_ns: 8_000,
            lines_ns: |_| Some(120.0),
            isa: Isa { avx2: true, avx_vnni: true, avx512: true, vnni: true, ..Isa::PORTABLE },
            refused: None,
        };
        MadeUp { root: tempfile::tempdir().unwrap(), kernel }
    }

    pub(super) fn file(self, path: &str, text: &str) -> MadeUp {
        let path = self.root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    pub(super) fn no_file(self, path: &str) -> MadeUp {
        std::fs::remove_file(self.root.path().join(path)).unwrap();
        self
    }

    /// A kernel that has nothing of what is asked for, on a slow machine.
    pub(super) fn old_kernel(mut self) -> MadeUp {
        self.kernel.landlock = 0;
        self.clock(900).wakes(150_000).isa(Isa::PORTABLE).answering(Err(Errno::NOSYS))
    }

    /// What is asked for is there and not permitted.
    pub(super) fn refused(mut self, errno: Errno) -> MadeUp {
        self.kernel.refused = Some((None, errno));
        self.answering(Err(errno))
    }

    pub(super) fn refused_path(mut self, path: &str, errno: Errno) -> MadeUp {
        self.kernel.refused = Some((Some(self.root.path().join(path)), errno));
        self
    }

    fn answering(mut self, answer: Result<(), Errno>) -> MadeUp {
        self.kernel.answer = answer;
        self
    }

    pub(super) fn landlock(mut self, abi: u8) -> MadeUp {
        self.kernel.landlock = abi;
        self
    }

    pub(super) fn clock(mut self, ns: u64) -> MadeUp {
        self.kernel.clock_ns = ns;
        self
    }

    pub(super) fn wakes(mut self, ns: u64) -> MadeUp {
        self.kernel.wakes_ns = ns;
        self
    }

    /// What lines take between two CPUs.
    pub(super) fn lines(mut self, ns: fn([usize; 2]) -> Option<f64>) -> MadeUp {
        self.kernel.lines_ns = ns;
        self
    }

    pub(super) fn isa(mut self, isa: Isa) -> MadeUp {
        self.kernel.isa = isa;
        self
    }

    /// What a check finds on it.
    pub(super) fn look<T>(&self, check: impl Fn(&Machine<'_>) -> T) -> T {
        check(&Machine { root: self.root.path(), calls: &self.kernel })
    }
}

impl Calls for Kernel {
    fn futex_waitv(&self) -> Result<(), Errno> {
        self.answer
    }

    fn seal_future_write(&self) -> Result<(), String> {
        self.answer.map_err(|errno| format!("seal: {errno}"))
    }

    fn landlock(&self) -> u8 {
        self.landlock
    }

    fn peer_pidfd(&self) -> Result<(), Errno> {
        self.answer
    }

    fn pass_rights(&self) -> Result<(), Errno> {
        self.answer
    }

    fn clock_cost_ns(&self) -> u64 {
        self.clock_ns
    }

    fn wake_cost_ns(&self) -> u64 {
        self.wakes_ns
    }

    fn two_lines_ns(&self, cpus: [usize; 2]) -> Option<f64> {
        (self.lines_ns)(cpus)
    }

    fn isa(&self) -> Isa {
        self.isa
    }

    fn may_use(&self, path: &Path) -> Result<(), Errno> {
        match &self.refused {
            Some((None, errno)) => Err(*errno),
            Some((Some(refused), errno)) if refused == path => Err(*errno),
            _ => Ok(()),
        }
    }
}
