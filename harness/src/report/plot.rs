//! Drawings of a run, each a piece of SVG.

use plotters::prelude::*;

use crate::error::HarnessError;

/// A line in a drawing.
#[derive(Debug)]
pub struct Line {
    /// Its name beside the axes.
    pub name: String,
    /// Which of the colours, counted from 0; the same number is the same colour in every drawing.
    pub colour: usize,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

/// What a drawing shows.
#[derive(Debug)]
pub struct Drawing<'d> {
    /// Above it.
    pub title: &'d str,
    /// What the x axis is.
    pub x: &'d str,
    /// What the y axis is; its values are nanoseconds.
    pub y: &'d str,
    /// Its lines.
    pub lines: Vec<Line>,
    /// How a value on the x axis is written.
    pub x_label: fn(&f64) -> String,
}

const SIZE: (u32, u32) = (1120, 440);
/// Width of the part with axes; names stand to the right of it.
const CHART: u32 = 850;
/// Height of a line of names.
const NAME: i32 = 20;
/// Characters of a name that have room.
const NAME_MAX: usize = 34;

/// Colours that are told apart on white, also by most who see few colours, in this order.
const COLOURS: [RGBColor; 10] = [
    RGBColor(0x1f, 0x77, 0xb4),
    RGBColor(0xd6, 0x27, 0x28),
    RGBColor(0x2c, 0xa0, 0x2c),
    RGBColor(0x94, 0x67, 0xbd),
    RGBColor(0xff, 0x7f, 0x0e),
    RGBColor(0x17, 0xbe, 0xcf),
    RGBColor(0x8c, 0x56, 0x4b),
    RGBColor(0xe3, 0x77, 0xc2),
    RGBColor(0x7f, 0x7f, 0x7f),
    RGBColor(0x11, 0x11, 0x11),
];

/// One drawing as SVG; nothing without points. Both axes as they are given, y logarithmic: times here range over six decades.
pub(super) fn draw(drawing: &Drawing<'_>) -> Result<String, HarnessError> {
    let points = || drawing.lines.iter().flat_map(|line| &line.points);
    let (x, y) = (range(points().map(|p| p.0)), range(points().map(|p| p.1)));
    let (Some(x), Some(y)) = (x, y) else { return Ok(String::new()) };
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(HarnessError::peer)?;
        let (left, right) = root.split_horizontally(CHART);
        let mut chart = ChartBuilder::on(&left)
            .caption(drawing.title, ("sans-serif", 17))
            .margin(10)
            .margin_right(36)
            .x_label_area_size(46)
            .y_label_area_size(84)
            .build_cartesian_2d(x.0..x.1, (y.0.max(1.0) * 0.8..y.1 * 1.25).log_scale())
            .map_err(HarnessError::peer)?;
        chart
            .configure_mesh()
            .x_labels(6)
            .x_desc(drawing.x)
            .y_desc(drawing.y)
            .x_label_formatter(&drawing.x_label)
            .y_label_formatter(&|ns| y_label(*ns, y.1 / y.0.max(1.0)))
            .label_style(("sans-serif", 13))
            .axis_desc_style(("sans-serif", 14))
            .light_line_style(WHITE)
            .draw()
            .map_err(HarnessError::peer)?;
        for line in &drawing.lines {
            let style = colour(line).stroke_width(2);
            chart
                .draw_series(LineSeries::new(line.points.iter().copied(), style).point_size(2))
                .map_err(HarnessError::peer)?;
        }
        names(&right, &drawing.lines)?;
        root.present().map_err(HarnessError::peer)?;
    }
    Ok(svg)
}

/// How a time on the y axis is written. Over more than half a decade, ticks whose names would run
/// into each other stay without one.
fn y_label(ns: f64, range: f64) -> String {
    const NAMED: [f64; 4] = [1.0, 2.0, 3.0, 5.0];
    const NARROW: f64 = 4.0;
    let first_digit = ns / 10.0_f64.powf(ns.log10().floor());
    let is_named = NAMED.iter().any(|named| (first_digit - named).abs() < 0.01);
    if is_named || range < NARROW { super::units::time(ns) } else { String::new() }
}

fn colour(line: &Line) -> RGBColor {
    COLOURS[line.colour % COLOURS.len()]
}

/// Which colour is whose; beside the axes, where no line runs.
fn names(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    lines: &[Line],
) -> Result<(), HarnessError> {
    let mut y = 48;
    for line in lines {
        let style = colour(line).stroke_width(3);
        area.draw(&PathElement::new([(0, y), (22, y)], style)).map_err(HarnessError::peer)?;
        let name: String = line.name.chars().take(NAME_MAX).collect();
        area.draw(&Text::new(name, (30, y - 7), ("sans-serif", 14))).map_err(HarnessError::peer)?;
        y += NAME;
    }
    Ok(())
}

fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let values = values.filter(|value| value.is_finite());
    let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
    // A range without width has no axis.
    (low <= high).then_some(if low < high { (low, high) } else { (low - 1.0, high + 1.0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_a_wide_axis_are_named_where_there_is_room() {
        let names = |ticks: &[f64], range| ticks.iter().map(|ns| y_label(*ns, range)).collect();
        let wide: Vec<String> = names(&[80.0, 90.0, 100.0, 200.0, 300.0, 400.0, 1000.0], 50.0);
        assert_eq!(wide, ["", "", "100 ns", "200 ns", "300 ns", "", "1.00 us"]);
        let narrow: Vec<String> = names(&[80.0, 90.0, 100.0], 1.5);
        assert_eq!(narrow, ["80 ns", "90 ns", "100 ns"]);
    }
}
