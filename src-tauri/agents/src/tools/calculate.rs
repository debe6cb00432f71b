//! Calculates, with units.

use std::sync::atomic::{AtomicU32, Ordering};

use fend_core::{Context, Interrupt};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use steward_kernel::{Code, SysError};

use super::{Card, Desk, Example, Job, Outcome};
use crate::survey::Survey;

/// Calculates.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Calculate {
    /// The expression, such as `17 * 23` or `12 miles to km`.
    expression: String,
}

impl Job for Calculate {
    const CARD: Card = Card {
        name: "calculate",
        about: "calculates, and converts units",
        frames: &[
            "(what('s| is| are)|whats|calculate|compute|work out|how much (is|are|does)|solve|evaluate|tell me)? ?(the (result|value) of )?{expression:=[-+−(√.\\d][-+−*/×÷^%().,\\d\\s=]*\\d[-+*/×÷^%().,\\d\\s]*?}( equal| make)?( =)?( ?\\?)?",
            "(what('s| is| are)|whats|calculate|compute|work out|how much (is|are)|tell me)? ?{expression:=[-(.\\d][-+*/×÷^%().,\\d\\sx]*(?:\\s*(?:plus|minus|times|multiplied by|divided by|over|to the power of|percent of|% of|x|mod|squared|cubed)\\s*[-(.\\d]?[-+*/×÷^%().,\\d\\s]*)+}( equal| make)?",
            "(what('s| is)|whats|calculate|compute|work out)( the)? {expression:=square root of [\\d.,]+}",
            "(convert|change|turn|express|what('s| is| are)|whats|how much (is|are))? ?{expression:=-?[\\d.,]+\\s*[\\p{L}°²³\"'/]+(?:\\s+(?:an|per)\\s+\\w+)?\\s+(?:to|in|into|as)\\s+[\\p{L}°²³/]+(?:\\s+(?:an|per)\\s+\\w+)?}",
            "how many {to:=[\\p{L}²³]+(?:\\s+(?:an|per)\\s+\\w+)?} (is|are|are there|make|make up)( in)? {from:=-?[\\d.,]+\\s*[\\p{L}°²³/]+(?:\\s+(?:an|per)\\s+\\w+)?|(?:an?|one)\\s+[\\p{L}²³]+}",
            "(计算|算一下|算算|算|求)? {expression:=[-(.\\d][-+*/×÷^%().,\\d\\s加减乘除以]*\\d\\s*\\)?} (等于|是|＝|=)? (多少|几)?",
            "(把|将)? {from:=-?[\\d.]+\\s*[\\p{Han}a-zA-Z°]+?} (换算成|转换成|换算为|转换为|换成|等于多少|是多少|合多少|有多少|等于几|是几) {to:=[\\p{Han}a-zA-Z°]+?}",
        ],
        blind: true,
        examples: &[
            Example {
                request: "what is 12 * 12?",
                arguments: r#"{"expression":"12 * 12"}"#,
            },
            Example {
                request: "convert 5 kg to pounds",
                arguments: r#"{"expression":"5 kg to pounds"}"#,
            },
            Example {
                request: "5 公里是多少英里",
                arguments: r#"{"expression":"5 km to miles"}"#,
            },
        ],
        ..Card::BLANK
    };

    fn complete(mut arguments: Map<String, Value>, _: &Survey) -> Option<Map<String, Value>> {
        let raw = match (
            super::take(&mut arguments, "from"),
            super::take(&mut arguments, "to"),
        ) {
            (Some(from), Some(to)) => format!("{from} to {to}"),
            _ => super::take(&mut arguments, "expression")?,
        };
        let expression = plain(&raw);
        // A wording that only looks like an expression ("3 apples in bowls") is not one.
        evaluate(&expression, &mut Context::new()).ok()?;
        arguments.insert("expression".to_owned(), expression.into());
        Some(arguments)
    }

    fn title(&self) -> String {
        format!("calculate {}", self.expression)
    }

    async fn run(self, _: &Desk<'_>) -> Result<Outcome, SysError> {
        let value = evaluate(&self.expression, &mut Context::new())?;
        Ok(format!("{} = {value}", self.expression).into())
    }
}

/// An expression with words, signs and Chinese units as the calculator knows them.
fn plain(raw: &str) -> String {
    const WORDS: [(&str, &str); 42] = [
        ("multiplied by", "*"),
        ("divided by", "/"),
        ("to the power of", "^"),
        ("percent of", "% of"),
        ("square root of", "sqrt"),
        ("times", "*"),
        ("plus", "+"),
        ("minus", "-"),
        ("squared", "^2"),
        ("cubed", "^3"),
        ("over", "/"),
        ("乘以", "*"),
        ("除以", "/"),
        ("加上", "+"),
        ("减去", "-"),
        ("乘", "*"),
        ("除", "/"),
        ("加", "+"),
        ("减", "-"),
        ("英里", " miles"),
        ("海里", " nautical miles"),
        ("公里", " km"),
        ("千米", " km"),
        ("厘米", " cm"),
        ("毫米", " mm"),
        ("英寸", " inches"),
        ("英尺", " feet"),
        ("米", " m"),
        ("公斤", " kg"),
        ("千克", " kg"),
        ("毫克", " mg"),
        ("克", " g"),
        ("英磅", " pounds"),
        ("磅", " pounds"),
        ("盎司", " ounces"),
        ("毫升", " ml"),
        ("升", " litres"),
        ("加仑", " gallons"),
        ("小时", " hours"),
        ("分钟", " minutes"),
        ("摄氏度", "°C"),
        ("华氏度", "°F"),
    ];
    let mut text = raw
        .trim()
        .trim_end_matches(['=', '?', '？'])
        .trim()
        .replace(['×'], "*");
    text = text
        .replace('÷', "/")
        .replace('−', "-")
        .replace('（', "(")
        .replace('）', ")");
    for (word, sign) in WORDS {
        let is_word = word.is_ascii();
        text = if is_word {
            let pattern = format!(r"(?i)\b{word}\b");
            match regex::Regex::new(&pattern) {
                Ok(pattern) => pattern.replace_all(&text, sign).into_owned(),
                Err(_) => text,
            }
        } else {
            text.replace(word, sign)
        };
    }
    for (pattern, with) in [
        (r"(?i)^(?:an?|one)\s+", "1 "),
        (r"(?i)\s+(?:into|in|as)\s+", " to "),
        (r"(?i)\b(?:an|per)\b", "/"),
        (r"(?i)(\d)\s*x\s*(\d)", "$1 * $2"),
        (r"(\d),(\d{3})\b", "$1$2"),
        (r"\s+", " "),
    ] {
        if let Ok(pattern) = regex::Regex::new(pattern) {
            text = pattern.replace_all(&text, with).into_owned();
        }
    }
    text.trim().to_owned()
}

/// Stops a calculation after a number of looks: by work done, not by the clock, so that it is the
/// same at every replay.
struct Patience(AtomicU32);

impl Interrupt for Patience {
    fn should_interrupt(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) > 200_000
    }
}

/// The value of an expression, as text.
pub(super) fn evaluate(expression: &str, context: &mut Context) -> Result<String, SysError> {
    if expression.len() > 16_384 {
        return Err(SysError::new(
            Code::Limit,
            "the expression is longer than 16,384 bytes",
        ));
    }
    let patience = Patience(AtomicU32::new(0));
    let result =
        fend_core::evaluate_with_interrupt(expression, context, &patience).map_err(|why| {
            SysError::new(
                Code::Invalid,
                format!("`{expression}` cannot be calculated: {why}"),
            )
            .hint("write it with numbers, + - * / ^ and units, such as `12 miles to km`")
        })?;
    let value = result.get_main_result().trim();
    Ok(value
        .strip_prefix("approx. ")
        .map_or_else(|| value.to_owned(), |v| format!("about {v}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_understood_as_written() {
        for (raw, expected) in [
            ("3 times 4", "12"),
            ("7 x 6", "42"),
            ("15% of 200", "30"),
            ("15 percent of 200", "30"),
            ("1,200 + 34", "1234"),
            ("3乘以4", "12"),
            ("square root of 144", "12"),
            ("2 to the power of 10", "1024"),
            ("10 km in m", "10000 m"),
            ("100 °F to °C", "about 37.7777777778 °C"),
        ] {
            let value = evaluate(&plain(raw), &mut Context::new());
            assert_eq!(
                value.as_deref().ok(),
                Some(expected),
                "{raw} → {}",
                plain(raw)
            );
        }
    }

    #[test]
    fn an_endless_calculation_stops_after_a_bound_of_work() {
        let error = evaluate("9^9^9^9", &mut Context::new())
            .err()
            .map(|e| e.code);
        assert_eq!(error, Some(Code::Invalid));
    }
}
