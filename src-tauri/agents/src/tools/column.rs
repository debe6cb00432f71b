//! Calculates over a column of a CSV file.

use fend_core::Context;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use steward_kernel::syscall::FsRead;
use steward_kernel::{Code, SysError};

use super::calculate::evaluate;
use super::{Card, Desk, Example, Job, Outcome};
use crate::survey::Survey;

/// What is calculated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Measure {
    Sum,
    Average,
    Minimum,
    Maximum,
}

/// Calculates over a column.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Column {
    /// The CSV file, with a first row of names.
    path: String,
    /// The column's name.
    column: String,
    /// What is calculated.
    measure: Measure,
}

impl Job for Column {
    const CARD: Card = Card {
        name: "column",
        about: "adds up a column of a CSV file, or finds its average, minimum or maximum",
        frames: &[
            "((what('s| is| are|was)|whats|calculate|compute|give me|tell me|find|get|show me|work out) )?(the )?{measure:=total|sum|average|mean|minimum|maximum|highest|lowest|biggest|smallest|largest|max|min}( number| amount| value)?( of| for| in)?( all| all the| the)? {column:word}( column| values?| numbers?)? (in|of|from) {path:file}",
            "{measure:=add up|sum up|sum|total|average}( all| all the| the)? {column:word}( column| values?| numbers?)? (in|of|from) {path:file}",
            "how (many|much) {column:word} (are|is)( there)? {measure:=in total|altogether|overall} (in|according to) {path:file}",
            "{path:file} (里面|里|中)? 的? {column:word} (这一列|列|一列)? 的? {measure:=总和|总计|合计|总数|总共|平均值|平均|均值|最大值|最小值|最大|最小} (是)? (多少|什么)?",
        ],
        examples: &[
            Example {
                request: "what is the average of price in data/sales.csv?",
                arguments: r#"{"path":"data/sales.csv","column":"price","measure":"average"}"#,
            },
            Example {
                request: "data/sales.csv 里 price 的总和是多少？",
                arguments: r#"{"path":"data/sales.csv","column":"price","measure":"sum"}"#,
            },
        ],
        ..Card::BLANK
    };

    fn complete(mut arguments: Map<String, Value>, _: &Survey) -> Option<Map<String, Value>> {
        let word = super::take(&mut arguments, "measure")?.to_lowercase();
        let measure = match word.as_str() {
            "average" | "mean" | "平均值" | "平均" | "均值" => Measure::Average,
            "minimum" | "lowest" | "smallest" | "min" | "最小值" | "最小" => Measure::Minimum,
            "maximum" | "highest" | "biggest" | "largest" | "max" | "最大值" | "最大" => {
                Measure::Maximum
            }
            _ => Measure::Sum,
        };
        arguments.insert("measure".to_owned(), serde_json::to_value(measure).ok()?);
        Some(arguments)
    }

    fn title(&self) -> String {
        format!("calculate over the column {} of {}", self.column, self.path)
    }

    async fn run(self, desk: &Desk<'_>) -> Result<Outcome, SysError> {
        let file = super::read_all(
            desk,
            FsRead {
                path: self.path.clone(),
                limit: None,
            },
        )
        .await?;
        let cells = cells(&file.text, &self.column, &self.path)?;
        let value = measure(&cells.numbers, self.measure)?;
        let (path, column, rows) = (&self.path, &cells.name, cells.numbers.len());
        let (english, chinese) = match self.measure {
            Measure::Sum => ("total", "总和"),
            Measure::Average => ("average", "平均值"),
            Measure::Minimum => ("minimum", "最小值"),
            Measure::Maximum => ("maximum", "最大值"),
        };
        let mut text = desk.language.say(
            format!("The {english} of {column} in {path} is {value} ({rows} rows)."),
            format!("{path} 里 {column} 的{chinese}是 {value}（{rows} 行）。"),
        );
        if cells.passed_over > 0 {
            let left = cells.passed_over;
            text.push_str(&desk.language.say(
                format!(" {left} rows without a number there were left out."),
                format!("有 {left} 行不是数字，没有算入。"),
            ));
        }
        Ok(text.into())
    }
}

struct Cells {
    name: String,
    numbers: Vec<String>,
    passed_over: usize,
}

fn cells(text: &str, column: &str, path: &str) -> Result<Cells, SysError> {
    let separator = match text.lines().next().unwrap_or_default() {
        first if first.contains('\t') => b'\t',
        first if !first.contains(',') && first.contains(';') => b';',
        _ => b',',
    };
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(separator)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.trim_start_matches('\u{feff}').as_bytes());
    let invalid =
        |e: csv::Error| SysError::new(Code::Invalid, format!("`{path}` is no table: {e}"));
    let names: Vec<String> = reader
        .headers()
        .map_err(invalid)?
        .iter()
        .map(str::to_owned)
        .collect();
    let plain = |name: &str| name.to_lowercase().replace(['_', '-', ' '], "");
    let singular = |name: &str| plain(name).trim_end_matches('s').to_owned();
    let at = names
        .iter()
        .position(|name| plain(name) == plain(column))
        .or_else(|| {
            names
                .iter()
                .position(|name| singular(name) == singular(column))
        });
    let Some(at) = at else {
        return Err(
            SysError::new(Code::NotFound, format!("`{path}` has no column `{column}`"))
                .hint(format!("name one of its columns: {}", names.join(", "))),
        );
    };
    let mut cells = Cells {
        name: names[at].clone(),
        numbers: Vec::new(),
        passed_over: 0,
    };
    for record in reader.records() {
        let record = record.map_err(invalid)?;
        let cell = record.get(at).unwrap_or_default();
        if cell.parse::<f64>().is_ok_and(f64::is_finite) {
            cells.numbers.push(cell.to_owned());
        } else {
            cells.passed_over += 1;
        }
    }
    if cells.numbers.is_empty() {
        let what = format!("column `{}` of `{path}` holds no numbers", cells.name);
        return Err(SysError::new(Code::Invalid, what).hint("name a column with numbers"));
    }
    Ok(cells)
}

/// Sums are exact: the cells are added as decimal numbers, not as floating point.
fn measure(numbers: &[String], measure: Measure) -> Result<String, SysError> {
    let value = |cell: &&String| cell.parse::<f64>().unwrap_or(f64::NAN);
    match measure {
        Measure::Minimum => Ok(numbers.iter().min_by(|a, b| value(a).total_cmp(&value(b)))),
        Measure::Maximum => Ok(numbers.iter().max_by(|a, b| value(a).total_cmp(&value(b)))),
        Measure::Sum => return sum(numbers).map(|(sum, _)| sum),
        Measure::Average => {
            let (sum, mut context) = sum(numbers)?;
            return evaluate(&format!("({sum}) / {}", numbers.len()), &mut context);
        }
    }
    .map(|extreme| extreme.cloned().unwrap_or_default())
}

fn sum(numbers: &[String]) -> Result<(String, Context), SysError> {
    let mut context = Context::new();
    let mut sum = "0".to_owned();
    for some in numbers.chunks(200) {
        let terms: Vec<String> = some.iter().map(|n| format!("({n})")).collect();
        sum = evaluate(&format!("{sum} + {}", terms.join(" + ")), &mut context)?;
    }
    Ok((sum, context))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn columns_are_calculated_exactly() {
        let table = "name;price\na;0.1\nb;0.2\nc;\n";
        let cells = cells(table, "Prices", "t.csv").unwrap();
        assert_eq!((cells.numbers.len(), cells.passed_over), (2, 1));
        for (of, expected) in [
            (Measure::Sum, "0.3"),
            (Measure::Average, "0.15"),
            (Measure::Minimum, "0.1"),
            (Measure::Maximum, "0.2"),
        ] {
            assert_eq!(measure(&cells.numbers, of).unwrap(), expected);
        }
    }

    #[test]
    fn a_column_that_is_not_there_is_told_with_those_that_are() {
        let error = cells("a,b\n1,2\n", "c", "t.csv").err().unwrap();
        assert_eq!(error.code, Code::NotFound);
        assert_eq!(error.hint.as_deref(), Some("name one of its columns: a, b"));
    }
}
