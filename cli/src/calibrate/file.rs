//! The file of a calibration: JSON with a version, bound to the driver, the processor and the threads that it was
//! made with.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use burst_driver::Figures;
use burst_hal::PerformanceInfo;
use burst_harness::engine::Spread;
use serde::{Deserialize, Serialize};

use super::measure::Found;
use super::workloads::Workload;
use crate::out::counted;
use crate::output_file;

/// Version of the file's form.
const FORMAT: u32 = 1;

/// The longest file that is read: some times what is written.
const MAX_FILE_BYTES: u64 = 1 << 16;

/// What a calibration was made with, and has to fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Made {
    /// Version of the driver.
    pub(super) driver: String,
    /// Model of the processor.
    pub(super) cpu: String,
    /// Threads that computed one execution.
    pub(super) threads: u32,
}

/// What a device says of one kind of data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Info {
    time: f32,
    power: f32,
}

/// One workload, measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) workload: String,
    /// The figure that it is for.
    figure: String,
    /// Time over that of the reference, over all rounds.
    pub(super) time: Spread,
    /// Energy over that of the reference, where it was measured.
    energy: Option<Spread>,
    /// What an execution takes the reference, at the median.
    pub(super) reference_us: f64,
}

impl Row {
    pub(super) fn new(workload: &Workload, found: &Found) -> Self {
        Row {
            workload: workload.name.to_owned(),
            figure: workload.figure.to_owned(),
            time: found.time,
            energy: found.energy,
            reference_us: found.reference_us,
        }
    }
}

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Calibration {
    format: u32,
    pub(super) made: Made,
    /// How power was got.
    pub(super) power: String,
    /// What is reported, by name.
    figures: BTreeMap<String, Info>,
    /// What the figures are made of.
    pub(super) measured: Vec<Row>,
}

/// Only what says whether the rest can be read.
#[derive(Deserialize)]
struct Head {
    format: u32,
}

/// What is wrong with a calibration, and where.
#[derive(Debug)]
pub(crate) enum CalibrationError {
    /// The file is not there.
    NotThere {
        file: PathBuf,
    },
    Wrong {
        file: PathBuf,
        why: String,
    },
}

impl std::fmt::Display for CalibrationError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CalibrationError::NotThere { file } => {
                write!(f, "there is no calibration {}", file.display())
            }
            CalibrationError::Wrong { file, why } => {
                write!(f, "the calibration {} is of no use here: {why}", file.display())
            }
        }
    }
}

impl std::error::Error for CalibrationError {}

/// What stands for a figure: the geometric mean over its workloads. Power is energy where that was measured, else
/// in proportion to time and threads.
pub(super) fn figure(name: &str, rows: &[Row], threads: u32) -> Option<PerformanceInfo> {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.figure == name).collect();
    let time = geometric_mean(rows.iter().map(|row| row.time.median))?;
    let energies: Option<Vec<f64>> =
        rows.iter().map(|row| row.energy.map(|energy| energy.median)).collect();
    let power = match energies {
        Some(energies) => geometric_mean(energies)?,
        None => time * f64::from(threads),
    };
    Some(PerformanceInfo { exec_time: single(time), power_usage: single(power) })
}

fn geometric_mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let logarithms: Vec<f64> = values.into_iter().map(f64::ln).collect();
    let count = u32::try_from(logarithms.len()).ok().filter(|count| *count > 0)?;
    Some((logarithms.iter().sum::<f64>() / f64::from(count)).exp())
}

#[expect(clippy::cast_possible_truncation, reason = "a ratio, far from either end")]
fn single(value: f64) -> f32 {
    value as f32
}

impl Calibration {
    pub(super) fn new(made: Made, power: String, figures: &Figures, measured: Vec<Row>) -> Self {
        let info = |(name, info): (&str, PerformanceInfo)| {
            (name.to_owned(), Info { time: info.exec_time, power: info.power_usage })
        };
        let figures = figures.entries().into_iter().map(info).collect();
        Calibration { format: FORMAT, made, power, figures, measured }
    }

    /// The figures by name.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, PerformanceInfo)> {
        self.figures.iter().map(|(name, info)| (name.as_str(), info.performance()))
    }

    /// The figures, where they can be used by what this says.
    fn figures(&self, here: &Made) -> Result<Figures, String> {
        let Made { driver, cpu, threads } = &self.made;
        if *driver != here.driver {
            return Err(format!("it was made by {driver}, this is {}", here.driver));
        }
        if *cpu != here.cpu {
            return Err(format!("it was made on {cpu}, this is {}", here.cpu));
        }
        if *threads != here.threads {
            let here = here.threads;
            let threads = counted((*threads).into(), "thread");
            return Err(format!("it was made with {threads}, here compute {here}"));
        }
        let figures = Figures::from_entries(|name| {
            let info = self.figures.get(name).map(Info::performance);
            info.ok_or_else(|| format!("it has no figure {name}"))
        })?;
        if let Some(name) = figures.illegal() {
            return Err(format!("its figure {name} has a number that is not above zero"));
        }
        let is_known = |name: &str| figures.entries().iter().any(|(known, _)| *known == name);
        match self.figures.keys().find(|name| !is_known(name)) {
            Some(name) => Err(format!("it has a figure {name:?}, which means nothing")),
            None => Ok(figures),
        }
    }
}

impl Info {
    fn performance(&self) -> PerformanceInfo {
        PerformanceInfo { exec_time: self.time, power_usage: self.power }
    }
}

/// Writes the file, and its folder where that is not there. Whoever reads meanwhile sees the old file or
/// the new one.
pub(super) fn write(file: &Path, calibration: &Calibration) -> std::io::Result<()> {
    let mut text = serde_json::to_vec_pretty(calibration)?;
    text.push(b'\n');
    output_file::replace(file, &text)
}

/// The figures of a file that fit here.
pub(super) fn read(file: &Path, here: &Made) -> Result<Figures, CalibrationError> {
    let wrong = |why: String| CalibrationError::Wrong { file: file.to_owned(), why };
    let text = match text(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(CalibrationError::NotThere { file: file.to_owned() });
        }
        text => text.map_err(|error| wrong(error.to_string()))?,
    };
    let head: Head = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    if head.format != FORMAT {
        return Err(wrong(format!("it has format {}, not {FORMAT}", head.format)));
    }
    let calibration: Calibration =
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    calibration.figures(here).map_err(wrong)
}

fn text(file: &Path) -> std::io::Result<String> {
    // A pipe that nobody writes to would be waited for.
    if !std::fs::metadata(file)?.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    let mut text = String::new();
    File::open(file)?.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        let why = format!("it is longer than {MAX_FILE_BYTES} bytes");
        return Err(std::io::Error::new(ErrorKind::FileTooLarge, why));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> Made {
        Made { driver: "burst-cpu 7".into(), cpu: "Abacus".into(), threads: 2 }
    }

    fn row(figure: &str, time: f64, energy: Option<f64>) -> Row {
        let spread = |median| Spread { median, min: median, max: median };
        Row {
            workload: "w".into(),
            figure: figure.into(),
            time: spread(time),
            energy: energy.map(spread),
            reference_us: 1.0,
        }
    }

    fn written(folder: &Path) -> (PathBuf, String) {
        let file = folder.join("state/calibration.json");
        let third = PerformanceInfo { exec_time: 1.0 / 3.0, power_usage: 0.37 };
        let figures = Figures { float16: third, ..Figures::BUILT_IN };
        let calibration = Calibration::new(made(), "by hand".into(), &figures, vec![]);
        write(&file, &calibration).unwrap();
        assert_eq!(read(&file, &made()).unwrap(), figures, "the same bits");
        let text = std::fs::read_to_string(&file).unwrap();
        (file, text)
    }

    #[test]
    fn what_is_written_is_read_by_who_it_fits() {
        let folder = tempfile::tempdir().unwrap();
        let (file, _) = written(folder.path());
        for (here, want) in [
            (Made { driver: "burst-cpu 8".into(), ..made() }, "burst-cpu 7, this is burst-cpu 8"),
            (Made { cpu: "Slide rule".into(), ..made() }, "on Abacus, this is Slide rule"),
            (Made { threads: 1, ..made() }, "2 threads, here compute 1"),
        ] {
            let error = read(&file, &here).unwrap_err().to_string();
            assert!(error.contains(want) && error.contains("calibration.json"), "{error}");
        }
        assert_eq!(std::fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_bad_file_is_refused_with_what_is_wrong_and_where() {
        let folder = tempfile::tempdir().unwrap();
        let (file, good) = written(folder.path());
        for (bad, want) in [
            (String::new(), "line 1"),
            (good.replacen('{', "[", 1), "line 2"),
            (good.replace("\"format\": 1", "\"format\": 2"), "format 2, not 1"),
            (good.replace("\"made\"", "\"mode\""), "missing field `made`"),
            (good.replace("\"while\"", "\"until\""), "no figure while"),
            (good.replace("\"power\": 0.37\n", "\"power\": 0\n"), "float16"),
            (good.replace("\"power\": 0.37\n", "\"power\": -1e39\n"), "float16"),
            (good.replace("\"power\": 0.37\n", "\"power\": \"low\"\n"), "line "),
            (
                good.replacen("\"figures\": {", "\"figures\": {\"x\":{\"time\":1,\"power\":1},", 1),
                "\"x\", which means nothing",
            ),
            (good.clone() + "{}", "trailing characters"),
            (" ".repeat(1 << 17), "longer than 65536 bytes"),
        ] {
            assert_ne!(bad, good, "{want}");
            std::fs::write(&file, &bad).unwrap();
            let error = read(&file, &made()).unwrap_err();
            assert!(matches!(error, CalibrationError::Wrong { .. }), "{error}");
            assert!(error.to_string().contains(want), "{want}: {error}");
        }
        let pipe = folder.path().join("pipe");
        let (here, kind) = (rustix::fs::CWD, rustix::fs::FileType::Fifo);
        rustix::fs::mknodat(here, &pipe, kind, rustix::fs::Mode::RWXU, 0).unwrap();
        let nobody_writes = read(&pipe, &made()).unwrap_err();
        assert!(nobody_writes.to_string().ends_with("it is not a file"), "{nobody_writes}");
        let absent = read(&folder.path().join("none"), &made()).unwrap_err();
        assert!(matches!(absent, CalibrationError::NotThere { .. }), "{absent}");
    }

    #[test]
    fn a_figure_is_the_geometric_mean_of_its_workloads() {
        let rows = [row("a", 0.25, None), row("b", 7.0, None), row("a", 1.0, None)];
        let info = figure("a", &rows, 3).unwrap();
        assert_eq!((info.exec_time, info.power_usage), (0.5, 1.5));
        let rows = [row("a", 0.25, Some(0.5)), row("a", 1.0, Some(2.0))];
        assert_eq!(figure("a", &rows, 3).unwrap().power_usage, 1.0);
        assert_eq!(figure("c", &rows, 3), None);
    }
}
