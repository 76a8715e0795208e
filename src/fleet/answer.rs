//! Parses responses of the Prometheus HTTP API into labelled series. Does no I/O.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::units::shortened;
use crate::untrusted;

/// Maximum length of an error or a warning in characters.
const MAX_TEXT: usize = 200;

/// A labelled series of points.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    pub(super) labels: BTreeMap<String, String>,
    /// Time in seconds since 1970 and value, oldest first; a single point for an instant query. Never empty.
    pub(super) points: Vec<(f64, f64)>,
}

impl Series {
    /// Returns the newest value.
    pub(super) fn value(&self) -> f64 {
        self.points.last().map_or(f64::NAN, |(_, value)| *value)
    }

    /// Returns a label; empty if the series does not have it.
    pub(super) fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }
}

/// The series of an answer that have a value, and the server's warnings.
pub(super) type Answer = (Vec<Series>, Vec<String>);

#[derive(Deserialize)]
struct Body {
    status: String,
    error: Option<String>,
    data: Option<Data>,
    /// For example from a server that queries other servers, of which one did not answer.
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Deserialize)]
struct Data {
    #[serde(default)]
    result: Vec<ResponseSeries>,
}

#[derive(Deserialize)]
struct ResponseSeries {
    #[serde(default)]
    metric: BTreeMap<String, String>,
    /// Set for an instant query.
    value: Option<ResponsePoint>,
    /// Set for a range query.
    #[serde(default)]
    values: Vec<ResponsePoint>,
}

/// The time, and the value as text, since JSON has no `NaN`.
#[derive(Deserialize)]
struct ResponsePoint(f64, String);

impl ResponsePoint {
    /// Returns the point; `None` if its value is not finite: a query computes 0 / 0 where a figure is unknown.
    fn finite(&self) -> Option<(f64, f64)> {
        let value: f64 = self.1.parse().ok()?;
        value.is_finite().then_some((self.0, value))
    }
}

/// Parses the body of a response.
///
/// # Errors
/// Returns the server's error message, or `None` if the body is not a Prometheus response.
pub(super) fn parse(body: &str) -> Result<Answer, Option<String>> {
    let answer: Body = untrusted::from_json(body.as_bytes()).map_err(|_| None)?;
    let found = match (answer.status.as_str(), answer.data) {
        ("success", Some(data)) => data.result,
        ("error", _) => return Err(Some(quoted(&answer.error.unwrap_or_default()))),
        _ => return Err(None),
    };
    let series = found.into_iter().map(|found| Series {
        points: found
            .value
            .iter()
            .chain(&found.values)
            .filter_map(ResponsePoint::finite)
            .collect(),
        labels: found.metric,
    });
    let series = series.filter(|series| !series.points.is_empty());
    let warnings = answer.warnings.iter().map(|text| quoted(text));
    Ok((series.collect(), warnings.collect()))
}

/// Returns the beginning of a text from the server, which may contain anything and be of any length.
fn quoted(text: &str) -> String {
    shortened(text, MAX_TEXT, "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_labels_and_non_numbers_are_skipped() {
        let body = r#"{"status":"success","data":{"resultType":"vector","result":[
            {"metric":{"run":"a \"b\""},"value":[1700000000.1,"0.25"]},
            {"metric":{"run":"c"},"value":[1700000000.1,"NaN"]}]},"warnings":["one store is away"]}"#;
        let (series, warnings) = parse(body).unwrap();
        let found: Vec<_> = series
            .iter()
            .map(|it| (it.label("run"), it.value()))
            .collect();
        assert_eq!(found, [("a \"b\"", 0.25)]);
        assert_eq!(series[0].label("rank"), "");
        assert_eq!(warnings, ["one store is away"]);
    }

    #[test]
    fn texts_of_the_server_are_short_and_printable() {
        let body = r#"{"status":"success","data":{"result":[
            {"metric":{"run":"a\u001b[2J","kind":"b\u009b2J"},"value":[1,"1"]}]},"warnings":["c\u0007"]}"#;
        let (series, warnings) = parse(body).unwrap();
        let labels: Vec<_> = series[0].labels.values().map(String::as_str).collect();
        assert_eq!(labels, ["b\u{fffd}2J", "a\u{fffd}[2J"]);
        assert_eq!(warnings, ["c\u{fffd}"]);
        let long = format!(
            r#"{{"status":"error","error":"{}"}}"#,
            "é".repeat(5_000_000)
        );
        assert_eq!(parse(&long), Err(Some("é".repeat(200) + "..")));
    }

    #[test]
    fn series_over_a_time_have_the_points_that_are_known() {
        let body = r#"{"status":"success","data":{"resultType":"matrix","result":[
            {"metric":{},"values":[[10,"1"],[20,"+Inf"],[30,"3"]]}]}}"#;
        let (series, _) = parse(body).unwrap();
        assert_eq!(series[0].points, [(10.0, 1.0), (30.0, 3.0)]);
    }

    #[test]
    fn server_errors_are_passed_on_and_other_answers_are_rejected() {
        let refused = r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#;
        assert_eq!(parse(refused), Err(Some("parse error".to_owned())));
        for body in ["<html>", "", "[]", "{}", r#"{"status":"success"}"#] {
            assert_eq!(parse(body), Err(None), "{body}");
        }
    }

    proptest::proptest! {
        #![proptest_config(support::fuzz::cases())]

        #[test]
        fn fuzzed_answers_of_a_prometheus(body in support::fuzz::text([
            r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"run":"a"},"value":[1700000000.1,"0.25"]}]},"warnings":["w"]}"#,
            r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[10,"1"],[20,"+Inf"],[30,"3"]]}]}}"#,
            r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#,
        ])) {
            if let Ok((series, _)) = parse(&body) {
                let finite = |series: &Series| series.points.iter().all(|(_, value)| value.is_finite());
                proptest::prop_assert!(series.iter().all(|series| !series.points.is_empty() && finite(series)));
            }
        }
    }
}
