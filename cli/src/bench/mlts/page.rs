//! What was found, as a page.

use anyhow::Result;
use burst_harness::report::{Drawing, Line, Page, Scale, nines};

use super::report::{Model, Report};

impl Report {
    /// A page that needs no other file.
    pub(super) fn page(&self) -> Result<String> {
        let how = format!(
            "{} thread{}; both ends of a burst wait: {}. {}",
            self.threads,
            if self.threads == 1 { "" } else { "s" },
            self.wait,
            self.data.text(),
        );
        let mut page =
            Page::new("Models on data", "Models on data, beside TFLite", &self.machine, &how);
        page.table(&self.summary());
        page.heading("Left out");
        page.list(&self.left_out());
        for model in &self.models {
            section(&mut page, model)?;
        }
        Ok(page.finish())
    }
}

fn section(page: &mut Page, model: &Model) -> Result<()> {
    page.heading(&model.model);
    page.list(&model.sentences());
    page.table(&model.comparison_table());
    let lines = model.paths.iter().enumerate().map(|(colour, row)| Line {
        name: row.path.clone(),
        colour,
        points: row.curve.iter().map(|(share, ns)| (nines(*share), *ns)).collect(),
    });
    page.drawing(&Drawing {
        title: &model.model,
        x: "share of executions that took no longer",
        y: "time of an execution",
        lines: lines.collect(),
        x_scale: Scale::Shares,
    });
    page.table(&model.path_table());
    Ok(())
}
