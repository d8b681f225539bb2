//! What was found, for people: tables and sentences.

use burst_harness::report::{Cell, Column, Table, dash, time};

use super::report::{Model, PathRow, Report};
use super::tally::{BoxAgreement, ClassAgreement, Comparison, MaskAgreement};
use crate::out::counted;

/// Over how many inputs answers were compared, and what [`agreement`] says of them.
const AGREEMENT: [&str; 7] =
    ["inputs", "top-1", "top-5", "boxes", "mask overlap", "mean square error", "all bytes equal"];

impl Report {
    /// One row for each model.
    pub(super) fn summary(&self) -> Table {
        let numbers = AGREEMENT.map(Column::number);
        let words = ["model", "task"].map(Column::text);
        let last = [Column::number("p50"), Column::number("LiteRT p50"), Column::text("verdict")];
        let mut table = Table::new([&words[..], &numbers[..], &last[..]].concat());
        for model in &self.models {
            table.add(model.summary_row());
        }
        table
    }

    /// Every path of every model with plain numbers, for a spreadsheet.
    pub(super) fn figures(&self) -> Table {
        let words = ["model", "path"].map(Column::text);
        let numbers = [
            "p50 us",
            "p90 us",
            "p99 us",
            "max us",
            "first us",
            "cold us",
            "per second",
            "memory KiB",
            "inputs",
            "same outputs",
            "sustained p50 us",
            "rate for p99",
            "judged",
            "judged the same",
            "too near",
            "LiteRT disagrees",
        ];
        let mut table = Table::new([&words[..], &numbers.map(Column::number)[..]].concat());
        for model in &self.models {
            for row in &model.paths {
                table.add(row.figures(model));
            }
        }
        table
    }

    /// What was left out, of the data and of the models.
    pub(super) fn left_out(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.data.others > 0 {
            let files = counted(self.data.others as u64, "file");
            lines.push(format!(
                "{files} of the data are no pictures (.jpg, .jpeg, .png) and no sound (.wav)"
            ));
        }
        if self.litert.is_none() {
            let how = "no Python with LiteRT was named (--python): nothing is compared with TFLite";
            lines.push(how.to_owned());
        }
        for model in &self.models {
            lines.extend(model.left_out_lines());
        }
        lines
    }
}

impl Model {
    /// The comparison that counts most: ours with the reference kernels, else with LiteRT.
    fn main_comparison(&self) -> Option<&Comparison> {
        let ours = || self.comparisons.iter().filter(|one| one.of == super::accuracy::BURST);
        ours().find(|one| one.with == super::accuracy::REFERENCE).or_else(|| ours().next())
    }

    fn path(&self, name: &str) -> Option<&PathRow> {
        self.paths.iter().find(|row| row.path == name)
    }

    fn summary_row(&self) -> Vec<Cell> {
        let p50 = |row: Option<&PathRow>| {
            let latency = row.and_then(|row| row.latency_us.or(row.over_data_us));
            latency.map_or_else(dash, |latency| time(latency.p50 * 1e3))
        };
        let main = self.main_comparison();
        let task = self.task.map_or_else(dash, |task| task.name().to_owned());
        let mut cells: Vec<Cell> =
            [self.model.clone(), task, self.inputs.to_string()].map(Cell::from).into();
        cells.extend(agreement(main).map(Cell::from));
        cells.push(p50(self.paths.first()).into());
        cells.push(p50(self.path(burst_harness::litert::PATH)).into());
        cells.push(self.verdict_cell());
        cells
    }

    /// The verdict in a word.
    pub(super) fn verdict_cell(&self) -> Cell {
        let word = |word, is_good| Cell::judged(word, is_good);
        match (&self.failed, &self.verdict, &self.left_out) {
            (Some(_), _, _) => word("failed", Some(false)),
            (None, Some(verdict), _) if verdict.not_worse => {
                word("not worse than TFLite", Some(true))
            }
            (None, Some(_), _) => word("worse than TFLite", Some(false)),
            (None, None, Some(_)) => word("not run on the data", None),
            (None, None, None) => word("nothing to compare with", None),
        }
    }

    fn left_out_lines(&self) -> Vec<String> {
        let name = &self.model;
        let mut lines = Vec::new();
        if let Some(why) = &self.failed {
            lines.push(format!("{name} failed: {why}"));
        }
        if let Some(why) = &self.left_out {
            lines.push(format!("{name} was not run on the data: {why}"));
        }
        if let Some(part) = &self.part {
            lines.push(format!("{name}: only a part of it runs here, {part}"));
        }
        if let Some(why) = &self.not_comparable {
            lines.push(format!("{name} is not comparable: {why}"));
        }
        if !self.comparisons.is_empty() && self.referred < self.inputs {
            let (referred, inputs) = (self.referred, self.inputs);
            lines.push(format!("{name}: {referred} of {inputs} inputs were given to the reference kernels, which are slow"));
        }
        lines.extend(self.unjudged_lines());
        lines.extend(self.damaged.iter().map(|damage| format!("{name}: left out: {damage}")));
        let unstable =
            self.paths.iter().filter(|row| !row.windows_p50_us.is_empty() && !row.is_stable);
        lines.extend(unstable.map(|row| {
            let windows = counted(row.windows_p50_us.len() as u64, "window");
            format!("{name}, {}: its times did not settle in {windows}", row.path)
        }));
        lines
    }

    /// What of LiteRT's answers judges nobody, and why.
    fn unjudged_lines(&self) -> Vec<String> {
        let name = &self.model;
        let mut lines = Vec::new();
        let of_litert = |one: &&Comparison| one.of == super::accuracy::BURST && self.referred > 0;
        for one in self.comparisons.iter().filter(of_litert) {
            let with = one.with;
            // Of a decision both kinds of kernels are asked the same: it is told once.
            if let Some(decided) = Decided::of(one)
                && with == super::accuracy::REFERENCE
            {
                let Decided { what, of, disagrees, .. } = decided;
                let beyond = decided.beyond_fair.map_or_else(String::new, |beyond| {
                    format!(", {beyond} of them although the reference is ahead by more than twice what is fair")
                });
                lines.push(format!(
                    "{name}: LiteRT disagrees with itself: {disagrees} of {of} {what}, which its two kinds of kernels see differently, judge nobody{beyond}"
                ));
                if let Some(too_near) = decided.too_near {
                    let fair = self.fair.as_deref().unwrap_or_default();
                    lines.push(format!(
                        "{name}: not clear: {too_near} of {of} {what} judge nobody, as the next one is too near: {fair}"
                    ));
                }
            }
            if let Some(BoxAgreement { of, litert_disagrees, .. }) = one.boxes {
                lines.push(format!(
                    "{name}: LiteRT disagrees with itself: {litert_disagrees} of {of} boxes of {with}, which its other kind of kernels does not find, judge nobody"
                ));
            }
        }
        lines
    }

    /// Of the reference kernels' decisions or boxes: those that can judge, of these the same, and how many cannot: too
    /// near, LiteRT disagrees.
    fn judged_figures(&self) -> [Option<u64>; 4] {
        let with_reference = |one: &&Comparison| one.with == super::accuracy::REFERENCE;
        let main = self.main_comparison().filter(with_reference);
        match main.map(|one| (Decided::of(one), one.boxes)) {
            Some((Some(d), _)) => [Some(d.clear), Some(d.same), d.too_near, Some(d.disagrees)],
            Some((None, Some(b))) => {
                [Some(b.clear), Some(b.clear_matched), None, Some(b.litert_disagrees)]
            }
            _ => [None; 4],
        }
    }

    /// How answers compare, one row for each pair.
    pub(super) fn comparison_table(&self) -> Table {
        let words = ["of", "with"].map(Column::text);
        let rest = ["same of those judged", "too near", "LiteRT disagrees", "largest difference"];
        let rest = rest.map(Column::number);
        let mut table = Table::new([&words[..], &AGREEMENT.map(Column::number), &rest].concat());
        for one in &self.comparisons {
            let mut cells = vec![one.of.to_owned(), one.with.to_owned(), one.inputs.to_string()];
            cells.extend(agreement(Some(one)));
            cells.extend(judged(Some(one).filter(|_| self.referred > 0)));
            cells.push(number(one.largest));
            table.add(cells);
        }
        table
    }

    /// All tables, empty ones too.
    pub(super) fn tables(&self) -> [Table; 3] {
        [self.comparison_table(), self.path_table(), self.client_table()]
    }

    /// Several clients of one service, one row for each number of them.
    pub(super) fn client_table(&self) -> Table {
        let columns = ["clients at once", "p50", "p90", "p99", "answers per second"];
        let mut table = Table::new(columns.map(Column::number).to_vec());
        for one in &self.clients {
            let q = one.latency_us;
            let mut cells = vec![one.clients.to_string()];
            cells.extend([q.p50, q.p90, q.p99].map(|us| time(us * 1e3)));
            cells.push(format!("{:.0}", one.per_second));
            table.add(cells);
        }
        table
    }

    /// Times, one row for each who computes.
    pub(super) fn path_table(&self) -> Table {
        let mut table = Table::new(vec![
            Column::text("path"),
            Column::number("p50"),
            Column::number("p90"),
            Column::number("p99"),
            Column::number("max").on_pages(),
            Column::number("first"),
            Column::number("cold"),
            Column::number("sustained p50"),
            Column::number("last tenth : first").on_pages(),
            Column::number("per second"),
            Column::number("outliers").in_full("outliers (from)"),
            Column::text("settled"),
            Column::number("memory"),
            Column::number("same outputs").in_full("outputs as over the first path"),
        ]);
        for row in &self.paths {
            table.add(row.cells(self.inputs));
        }
        table
    }

    /// Sentences: the verdict and what it rests on, what the files are known to show.
    pub(super) fn sentences(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(verdict) = &self.verdict {
            let word =
                if verdict.not_worse { "not worse than TFLite" } else { "WORSE than TFLite" };
            lines.push(format!("{word}: {}", verdict.because.join("; ")));
        }
        if let Some(truth) = self.truth {
            let litert =
                truth.litert.map_or_else(String::new, |right| format!(", LiteRT in {right}"));
            lines.push(format!(
                "the best class is what the file is known to show in {} of {}{litert}",
                truth.burst, truth.of
            ));
        }
        for (row, rate) in
            self.paths.iter().filter_map(|row| Some((row, row.rate_for_p99.as_ref()?)))
        {
            let below = time(rate.p99_below_us * 1e3);
            lines.push(match rate.per_second {
                Some(most) => format!(
                    "{}: up to {most:.0} requests per second keep p99 below {below}",
                    row.path
                ),
                None => format!("{}: no rate that was tried keeps p99 below {below}", row.path),
            });
        }
        let differing = self.paths.iter().filter_map(|row| Some((row, row.equal?)));
        for (row, equal) in differing.filter(|(_, equal)| *equal < self.inputs) {
            let of = self.inputs;
            lines.push(format!(
                "{}: only {equal} of {of} outputs are those of the first path",
                row.path
            ));
        }
        lines
    }
}

impl PathRow {
    fn figures(&self, model: &Model) -> Vec<String> {
        let plain =
            |number: Option<f64>| number.map_or_else(String::new, |number| format!("{number:.2}"));
        let count = |count: Option<u64>| count.map_or_else(String::new, |count| count.to_string());
        let latency = self.latency_us.or(self.over_data_us);
        let mut cells = vec![model.model.clone(), self.path.clone()];
        cells.extend(
            [latency.map(|q| q.p50), latency.map(|q| q.p90), latency.map(|q| q.p99)].map(plain),
        );
        cells.extend(
            [latency.map(|q| q.max), self.first_us, self.cold_us, self.per_second].map(plain),
        );
        cells.extend([self.memory_kib, Some(model.inputs), self.equal].map(count));
        cells.push(plain(self.sustained.as_ref().map(|sustained| sustained.latency_us.p50)));
        cells.push(plain(self.rate_for_p99.as_ref().and_then(|rate| rate.per_second)));
        cells.extend(model.judged_figures().map(count));
        cells
    }

    fn cells(&self, inputs: u64) -> Vec<String> {
        let us = |us: Option<f64>| us.map_or_else(dash, |us| time(us * 1e3));
        let latency = self.latency_us.or(self.over_data_us);
        let sustained = self.sustained.as_ref();
        vec![
            self.path.clone(),
            us(latency.map(|q| q.p50)),
            us(latency.map(|q| q.p90)),
            us(latency.map(|q| q.p99)),
            us(latency.map(|q| q.max)),
            us(self.first_us),
            us(self.cold_us),
            us(sustained.map(|s| s.latency_us.p50)),
            sustained
                .and_then(|s| s.last_to_first)
                .map_or_else(dash, |ratio| format!("{ratio:.2}")),
            self.per_second.map_or_else(dash, |rate| format!("{rate:.0}")),
            match self.outliers.from_us {
                Some(from) => format!("{} ({})", self.outliers.count, time(from * 1e3)),
                None => self.outliers.count.to_string(),
            },
            match (self.windows_p50_us.len(), self.is_stable) {
                (0, _) => dash(),
                (windows, true) => format!("after {}", counted(windows as u64, "window")),
                (windows, false) => format!("not in {}", counted(windows as u64, "window")),
            },
            self.memory_kib.map_or_else(dash, |kib| format!("{} MiB", kib / 1024)),
            self.equal.map_or_else(dash, |equal| format!("{equal} of {inputs}")),
        ]
    }
}

/// Decisions about classes, of a classifier or a segmenter.
struct Decided {
    what: &'static str,
    of: u64,
    clear: u64,
    same: u64,
    too_near: Option<u64>,
    disagrees: u64,
    beyond_fair: Option<u64>,
}

impl Decided {
    fn of(one: &Comparison) -> Option<Decided> {
        let of_classes = |found: ClassAgreement| Decided {
            what: "best classes",
            of: found.of,
            clear: found.clear,
            same: found.clear_top1,
            too_near: Some(found.too_near),
            disagrees: found.litert_disagrees,
            beyond_fair: Some(found.beyond_fair),
        };
        let of_pixels = |found: MaskAgreement| Decided {
            what: "pixels",
            of: found.of,
            clear: found.clear,
            same: found.clear_equal,
            too_near: found.too_near,
            disagrees: found.litert_disagrees,
            beyond_fair: found.beyond_fair,
        };
        one.classes.map(of_classes).or_else(|| one.mask.map(of_pixels))
    }
}

/// Best class, five best, boxes, mask, mean square error, equal.
fn agreement(one: Option<&Comparison>) -> [String; 6] {
    let Some(one) = one else { return [(); 6].map(|()| dash()) };
    let of = |count: u64, of: u64| format!("{count} of {of}");
    [
        one.classes.map_or_else(dash, |classes| of(classes.top1, classes.of)),
        one.classes.map_or_else(dash, |classes| of(classes.top5, classes.of)),
        one.boxes.map_or_else(dash, |boxes| of(boxes.matched, boxes.of)),
        one.mask.map_or_else(dash, |mask| format!("{:.5}", mask.mean_overlap)),
        number(one.mean_square_error),
        of(one.equal, one.inputs),
    ]
}

/// Of decisions or boxes that can be judged those that are the same, and how many cannot: too near, LiteRT disagrees.
fn judged(one: Option<&Comparison>) -> [String; 3] {
    let of = |same: u64, clear: u64| format!("{same} of {clear}");
    match one.map(|one| (Decided::of(one), one.boxes)) {
        Some((Some(d), _)) => {
            let too_near = d.too_near.map_or_else(dash, |count| count.to_string());
            [of(d.same, d.clear), too_near, d.disagrees.to_string()]
        }
        Some((None, Some(b))) => {
            [of(b.clear_matched, b.clear), dash(), b.litert_disagrees.to_string()]
        }
        _ => [(); 3].map(|()| dash()),
    }
}

/// A number of any size in few digits.
fn number(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { format!("{value:.2e}") }
}
