//! Energy, where the machine tells: the counters that Linux has for packages of processors (RAPL).

use std::path::{Path, PathBuf};

/// Where the counters of the kernel are.
const FOLDER: &str = "/sys/class/powercap";

/// The counters of all packages, each in microjoules.
pub(super) struct Counters(Vec<Package>);

struct Package {
    counter: PathBuf,
    /// Where it begins anew.
    range: u64,
}

/// What is said where no counter can be read.
pub(super) fn assumption() -> String {
    "assumed: time x threads, as no energy counter can be read here".to_owned()
}

impl Counters {
    /// Those that this process may read; `None` without any. Most systems let only root read them.
    pub(super) fn open() -> Option<Self> {
        Counters::within(Path::new(FOLDER))
    }

    fn within(folder: &Path) -> Option<Self> {
        let entries = std::fs::read_dir(folder).ok()?;
        let package = |entry: std::io::Result<std::fs::DirEntry>| {
            let path = entry.ok()?.path();
            // `intel-rapl:0` is a package, also on other makers' processors; `intel-rapl:0:1` a part of it.
            let number = path.file_name()?.to_str()?.strip_prefix("intel-rapl:")?;
            number.parse::<u32>().ok()?;
            let range = read(&path.join("max_energy_range_uj"))?;
            let counter = path.join("energy_uj");
            read(&counter).map(|_| Package { counter, range })
        };
        let packages: Vec<Package> = entries.filter_map(package).collect();
        (!packages.is_empty()).then_some(Counters(packages))
    }

    /// What is said of how energy was measured.
    pub(super) fn describe(&self) -> String {
        format!("measured: {} packages by RAPL counters in {FOLDER}", self.0.len())
    }

    /// What the counters say now; `None` where one cannot be read any more.
    pub(super) fn read(&self) -> Option<Vec<u64>> {
        self.0.iter().map(|package| read(&package.counter)).collect()
    }

    /// Microjoules between two readings, less than a whole round of a counter apart.
    pub(super) fn between(&self, before: &[u64], after: &[u64]) -> u64 {
        let passed = |((package, before), after): ((&Package, &u64), &u64)| {
            after
                .checked_sub(*before)
                .unwrap_or_else(|| package.range.saturating_sub(*before).saturating_add(*after))
        };
        self.0.iter().zip(before).zip(after).map(passed).sum()
    }
}

fn read(file: &Path) -> Option<u64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_added_up_and_counters_begin_anew() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Counters::within(folder.path()).is_none());
        for (name, energy) in [("intel-rapl:0", 900), ("intel-rapl:1", 5), ("intel-rapl:0:0", 7)] {
            let package = folder.path().join(name);
            std::fs::create_dir(&package).unwrap();
            std::fs::write(package.join("max_energy_range_uj"), "1000\n").unwrap();
            std::fs::write(package.join("energy_uj"), format!("{energy}\n")).unwrap();
        }
        let counters = Counters::within(folder.path()).unwrap();
        let before = counters.read().unwrap();
        std::fs::write(folder.path().join("intel-rapl:0/energy_uj"), "20").unwrap();
        std::fs::write(folder.path().join("intel-rapl:1/energy_uj"), "8").unwrap();
        let after = counters.read().unwrap();
        assert_eq!(counters.between(&before, &after), 100 + 20 + 3);
        std::fs::remove_file(folder.path().join("intel-rapl:1/energy_uj")).unwrap();
        assert!(counters.read().is_none());
    }
}
