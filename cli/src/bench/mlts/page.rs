//! What was found, as a page.

use anyhow::Result;
use burst_harness::engine::Quantiles;
use burst_harness::report::{Drawing, Heights, Line, Page, Scale, nines};

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
        y_scale: Heights::Times,
    });
    page.table(&model.path_table());
    page.drawing(&clients(model));
    page.table(&model.client_table());
    Ok(())
}

/// Several clients of one service: how long each waits.
fn clients(model: &Model) -> Drawing<'static> {
    let line = |(colour, name): (usize, &str), of: fn(&Quantiles) -> f64| Line {
        name: name.to_owned(),
        colour,
        points: (model.clients.iter())
            .map(|one| (f64::from(one.clients), of(&one.latency_us) * 1e3))
            .collect(),
    };
    Drawing {
        title: "Clients of one service at once",
        x: "clients",
        x_scale: Scale::Numbers,
        y_scale: Heights::Times,
        y: "time of an execution",
        lines: vec![line((0, "p50"), |q| q.p50), line((1, "p99"), |q| q.p99)],
    }
}
