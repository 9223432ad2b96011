//! Panels as one SVG, in the places that they have in Grafana.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::panels::{Kind, Line, Panel};

const TITLE: &str = "The dashboard: injections, running pods, restarts, reviews, memory and certificates in some minutes of a small cluster";

/// Pixels of a column and of a unit of height.
const COLUMN: u32 = 50;
const UNIT: u32 = 32;

/// Between panels, in pixels.
const GAP: i32 = 4;

/// The names of lines below a panel, at most.
const NAMED: usize = 8;

/// The width of a letter in the names of lines, in pixels, about.
const LETTER: u32 = 8;

/// Colours of lines that are told apart with any vision, by Okabe and Ito.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(140, 130, 0),
    RGBColor(60, 60, 60),
];
const BEHIND: RGBColor = RGBColor(244, 245, 245);
const TEXT: RGBColor = RGBColor(36, 41, 46);
const FAINT: RGBColor = RGBColor(200, 203, 206);

type Area<'t> = DrawingArea<SVGBackend<'t>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// Draws panels; lines last so many seconds.
pub fn picture(panels: &[Panel], seconds: u64) -> String {
    let mut text = String::new();
    let height = panels.iter().map(|panel| (panel.place[1] + panel.place[3]) * UNIT).max().unwrap_or(UNIT);
    {
        let root = SVGBackend::with_string(&mut text, (24 * COLUMN, height)).into_drawing_area();
        root.fill(&BEHIND).expect("text can be drawn");
        for panel in panels {
            let [x, y, width, height] = panel.place;
            let place = root.clone().shrink((x * COLUMN, y * UNIT), (width * COLUMN, height * UNIT));
            draw(&place.margin(GAP, GAP, GAP, GAP), panel, seconds).expect("text can be drawn");
        }
        root.present().expect("text can be drawn");
    }
    // For those who do not see it; the library writes none.
    text.replacen('>', &format!(" role=\"img\">\n<title>{TITLE}</title>"), 1)
}

fn draw(area: &Area<'_>, panel: &Panel, seconds: u64) -> Drawn {
    let (width, height) = area.dim_in_pixel();
    let title = |size: u32| ("sans-serif", size).into_font().color(&TEXT);
    if panel.kind == Kind::Row {
        area.draw_text(&panel.title, &title(18), (4, 4))?;
        return Ok(());
    }
    let (right, bottom) = (i32::try_from(width)?, i32::try_from(height)?);
    area.draw(&Rectangle::new([(0, 0), (right - 1, bottom - 1)], WHITE.filled()))?;
    area.draw(&Rectangle::new([(0, 0), (right - 1, bottom - 1)], FAINT))?;
    area.draw_text(&panel.title, &title(15), (10, 8))?;
    let below = area.clone().shrink((10, 30), (width.saturating_sub(20), height.saturating_sub(36)));
    if panel.lines.iter().all(|line| line.points.is_empty()) {
        below.draw_text("No data", &title(15), (0, 10))?;
        return Ok(());
    }
    match panel.kind {
        Kind::Row => Ok(()),
        Kind::Stat => {
            let last = panel.lines.first().map(|line| shown(last(line), &panel.unit)).unwrap_or_default();
            Ok(below.draw_text(&last, &title(34), (0, 16))?)
        }
        Kind::Table => table(&below, panel, seconds),
        Kind::TimeSeries => lines(&below, panel, seconds),
    }
}

/// A line of text for each line that is there at the end.
fn table(area: &Area<'_>, panel: &Panel, seconds: u64) -> Drawn {
    let font = ("sans-serif", 14).into_font().color(&TEXT);
    let (width, height) = area.dim_in_pixel();
    let rows = usize::try_from(height / 20)?;
    let is_there = |line: &&Line| line.points.last().is_some_and(|(second, _)| *second >= exact(seconds));
    for (row, line) in panel.lines.iter().filter(is_there).take(rows).enumerate() {
        let y = i32::try_from(row * 20)?;
        area.draw_text(&line.name, &font, (0, y))?;
        area.draw_text(&shown(last(line), &panel.unit), &font, (i32::try_from(width)? - 50, y))?;
    }
    Ok(())
}

fn lines(area: &Area<'_>, panel: &Panel, seconds: u64) -> Drawn {
    let named: Vec<_> = panel.lines.iter().filter(|line| !line.points.is_empty()).take(NAMED).collect();
    let (width, height) = area.dim_in_pixel();
    let longest = named.iter().map(|line| line.name.len()).max().unwrap_or_default();
    let columns = if u32::try_from(longest)? * LETTER + 24 < width / 2 { 2 } else { 1 };
    let rows = u32::try_from(named.len().div_ceil(columns))?;
    let legend = rows * 18;
    let plot = area.clone().shrink((0, 0), (width, height.saturating_sub(legend)));
    let values = named.iter().flat_map(|line| &line.points).map(|(_, value)| *value);
    let most = values.fold(0.0, f64::max).max(f64::MIN_POSITIVE) * 1.1;
    let mut chart = ChartBuilder::on(&plot)
        .x_label_area_size(22)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..exact(seconds), 0.0..most)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(FAINT)
        .light_line_style(TRANSPARENT)
        .axis_style(FAINT)
        .x_labels(6)
        .y_labels(4)
        .x_label_formatter(&|second| format!("{second:.0} s"))
        .y_label_formatter(&|value| shown(*value, &panel.unit))
        .label_style(("sans-serif", 12).into_font().color(&TEXT))
        .draw()?;
    for (line, colour) in named.iter().zip(COLOURS) {
        chart.draw_series(LineSeries::new(line.points.iter().copied(), colour.stroke_width(2)))?;
    }
    for (place, (line, colour)) in named.iter().zip(COLOURS).enumerate() {
        let x = i32::try_from(place % columns)? * i32::try_from(width / 2)?;
        let y = i32::try_from(height - legend)? + i32::try_from(place / columns)? * 18;
        area.draw(&Rectangle::new([(x, y + 4), (x + 12, y + 8)], colour.filled()))?;
        area.draw_text(&line.name, &("sans-serif", 13).into_font().color(&TEXT), (x + 18, y))?;
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "some minutes")]
fn exact(seconds: u64) -> f64 {
    seconds as f64
}

fn last(line: &Line) -> f64 {
    line.points.last().map_or(0.0, |(_, value)| *value)
}

/// A value in a unit of Grafana.
fn shown(value: f64, unit: &str) -> String {
    match unit {
        "s" if value >= 172_800.0 => format!("{:.0} days", value / 86_400.0),
        "s" if value >= 1.0 => format!("{value:.1} s"),
        "s" => format!("{:.1} ms", value * 1000.0),
        "bytes" => format!("{:.1} MiB", value / 1_048_576.0),
        "reqps" => format!("{value:.1}/s"),
        "d" => format!("{value:.0} d"),
        _ if value.fract().abs() < 0.05 || value >= 100.0 => format!("{value:.0}"),
        _ => format!("{value:.1}"),
    }
}
