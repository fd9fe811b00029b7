//! Several processes on one store: each one's share, and the waits.

use std::io::{BufRead, Read, Write};
use std::path::Path;
use std::process::{Child, ExitCode, Stdio};

use super::figures::{Column, Columns, Row};
use super::load::{Crowd, Load};
use super::{audited, failed, part, printed};
use crate::context::Context;
use crate::error::CliError;

const COLUMNS: Columns<6> = Columns([
    Column("actions_per_s", "actions/s", 0),
    Column("fair_share", "of a fair share", 2),
    Column("p50_us", "p50 us", 0),
    Column("p99_us", "p99 us", 0),
    Column("worst_us", "worst wait us", 0),
    Column("others_per_s", "others/s?", 0),
]);
const PROCESSES: &str = "processes";
/// What one says that is ready, and hears when all are.
const READY: &[u8] = b"\n";

/// One process: says when it is ready, acts when it is let go, and prints its figures.
pub(super) fn child(
    context: &Context,
    place: &Path,
    server: Option<&str>,
    crowd: &Crowd,
) -> Result<ExitCode, CliError> {
    let load = Load::open(place, server)?;
    context.out.text("\n")?;
    let mut go = Vec::new();
    std::io::stdin().lock().read_until(READY[0], &mut go).map_err(|error| failed(error.kind()))?;
    if go != READY {
        return Err(failed("was not let go"));
    }
    let ran = load.run(crowd)?;
    // Only all together say what a fair share is.
    let share = 0.0;
    let [p50, p99, worst] = [50, 99, 100].map(|percent| ran.percentile(percent));
    let row = [ran.actions_per_s(), share, p50, p99, worst, ran.others_per_s()];
    context.out.document(COLUMNS.document(PROCESSES, &[row]))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn run(
    context: &Context,
    scratch: &Path,
    server: Option<&str>,
    processes: usize,
    crowd: &Crowd,
) -> Result<ExitCode, CliError> {
    let place = scratch.join("shared");
    // Made before they start, so that none of them pays for it.
    Load::open(&place, server)?.control().close();
    let started = (0..processes).map(|_| start(&place, server, crowd));
    let mut running = started.collect::<Result<Vec<_>, _>>()?;
    // One that has ended does not say this, and why is told by what it printed.
    let _ready: Vec<_> = running.iter_mut().map(ready).collect();
    for process in &mut running {
        // Nobody reads it any more whose process has ended.
        let _heard = process.stdin.take().map(|mut stdin| stdin.write_all(READY));
    }
    // All have ended before the place goes.
    let ended: Vec<_> = running.into_iter().map(|process| printed(process.wait_with_output())).collect();
    let mut rows: Vec<Row<6>> = Vec::new();
    for output in ended {
        rows.push(COLUMNS.read(PROCESSES, &output?).ok_or_else(|| failed("printed no figures"))?);
    }
    let total: f64 = rows.iter().map(|row| row[0]).sum();
    for row in &mut rows {
        row[1] = row[0] * processes as f64 / total;
    }
    audited(&Load::open(&place, server)?)?;
    if context.out.is_json() {
        context.out.document(COLUMNS.document(PROCESSES, &rows))?;
    } else {
        context.out.text(&COLUMNS.table(&rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn start(place: &Path, server: Option<&str>, crowd: &Crowd) -> Result<Child, CliError> {
    let mut command = part(server)?;
    command.args(crowd.arguments()).arg("--child").arg(place);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().map_err(|error| failed(error.kind()))
}

/// Waits until it is ready, or has ended.
fn ready(process: &mut Child) -> std::io::Result<()> {
    let mut said = [0];
    process.stdout.as_mut().map_or(Ok(()), |stdout| stdout.read_exact(&mut said))
}
