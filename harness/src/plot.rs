//! Drawings of a run, each a piece of SVG.

use plotters::prelude::*;

use crate::error::HarnessError;

/// A line in a drawing.
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// What a drawing shows.
pub(crate) struct Drawing<'d> {
    pub(crate) title: &'d str,
    pub(crate) x: &'d str,
    pub(crate) y: &'d str,
    pub(crate) lines: Vec<Line>,
    /// How a place on the x axis is written.
    pub(crate) x_label: fn(&f64) -> String,
}

const SIZE: (u32, u32) = (960, 440);

/// Both axes as they are given, y logarithmic: times here range over six decades.
pub(crate) fn draw(drawing: &Drawing<'_>) -> Result<String, HarnessError> {
    let points = || drawing.lines.iter().flat_map(|line| &line.points);
    let (x, y) = (range(points().map(|p| p.0)), range(points().map(|p| p.1)));
    let (Some(x), Some(y)) = (x, y) else { return Ok(String::new()) };
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(HarnessError::peer)?;
        let mut chart = ChartBuilder::on(&root)
            .caption(drawing.title, ("sans-serif", 18))
            .margin(10)
            .x_label_area_size(40)
            .y_label_area_size(70)
            .build_cartesian_2d(x.0..x.1, (y.0.max(1.0) * 0.8..y.1 * 1.25).log_scale())
            .map_err(HarnessError::peer)?;
        chart
            .configure_mesh()
            .x_labels(6)
            .x_desc(drawing.x)
            .y_desc(drawing.y)
            .x_label_formatter(&drawing.x_label)
            .y_label_formatter(&|ns| crate::report::time(*ns))
            .light_line_style(WHITE)
            .draw()
            .map_err(HarnessError::peer)?;
        for (index, line) in drawing.lines.iter().enumerate() {
            let colour = Palette99::pick(index).to_rgba();
            let style = colour.stroke_width(2);
            chart
                .draw_series(LineSeries::new(line.points.iter().copied(), style).point_size(2))
                .map_err(HarnessError::peer)?
                .label(&line.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw()
            .map_err(HarnessError::peer)?;
        root.present().map_err(HarnessError::peer)?;
    }
    Ok(svg)
}

fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let values = values.filter(|value| value.is_finite());
    let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
    // A range without width has no axis.
    (low <= high).then_some(if low < high { (low, high) } else { (low - 1.0, high + 1.0) })
}
