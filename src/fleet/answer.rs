//! What the HTTP interface of Prometheus answers, as series with labels. Pure.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A series at one time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Value {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) value: f64,
}

/// A series over a time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    pub(super) labels: BTreeMap<String, String>,
    /// By seconds since 1970.
    pub(super) values: Vec<(f64, f64)>,
}

#[derive(Deserialize)]
struct Answer {
    status: String,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    data: Option<Data>,
    /// A server that asks others says so where one of them did not answer.
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Deserialize)]
struct Data {
    #[serde(default)]
    result: Vec<Series>,
}

#[derive(Deserialize)]
struct Series {
    #[serde(default)]
    metric: BTreeMap<String, String>,
    #[serde(default)]
    value: Option<Point>,
    #[serde(default)]
    values: Vec<Point>,
}

/// Its time, and its value as text: JSON has no `NaN`.
#[derive(Deserialize)]
struct Point(f64, String);

impl Point {
    /// `None` where it is no finite number: 0 / 0 is what is not known.
    fn finite(&self) -> Option<(f64, f64)> {
        let value: f64 = self.1.parse().ok()?;
        value.is_finite().then_some((self.0, value))
    }
}

/// What is in an answer, with its warnings.
///
/// # Errors
/// What the server says is wrong; `None` where it does not speak as Prometheus does.
fn parse(body: &str) -> Result<(Vec<Series>, Vec<String>), Option<String>> {
    let answer: Answer = serde_json::from_str(body).map_err(|_| None)?;
    match (answer.status.as_str(), answer.data) {
        ("success", Some(data)) => Ok((data.result, answer.warnings)),
        ("error", _) => Err(Some(answer.error.unwrap_or_default())),
        _ => Err(None),
    }
}

/// The answer to a query of one time.
///
/// # Errors
/// As of [`parse`].
pub(super) fn values(body: &str) -> Result<(Vec<Value>, Vec<String>), Option<String>> {
    let (all, warnings) = parse(body)?;
    let values = all.into_iter().filter_map(|series| {
        let (_, value) = series.value.as_ref()?.finite()?;
        let labels = series.metric;
        Some(Value { labels, value })
    });
    Ok((values.collect(), warnings))
}

/// The answer to a query of a time range.
///
/// # Errors
/// As of [`parse`].
pub(super) fn lines(body: &str) -> Result<(Vec<Line>, Vec<String>), Option<String>> {
    let (all, warnings) = parse(body)?;
    let lines = all.into_iter().map(|series| Line {
        values: series.values.iter().filter_map(Point::finite).collect(),
        labels: series.metric,
    });
    Ok((lines.collect(), warnings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_with_their_labels_and_what_is_no_number_is_left_out() {
        let body = r#"{"status":"success","data":{"resultType":"vector","result":[
            {"metric":{"run":"a \"b\""},"value":[1700000000.1,"0.25"]},
            {"metric":{"run":"c"},"value":[1700000000.1,"NaN"]}]},"warnings":["one store is away"]}"#;
        let (values, warnings) = values(body).unwrap();
        let labels = BTreeMap::from([("run".to_owned(), "a \"b\"".to_owned())]);
        assert_eq!(
            values,
            [Value {
                labels,
                value: 0.25
            }]
        );
        assert_eq!(warnings, ["one store is away"]);
    }

    #[test]
    fn lines_have_the_points_that_are_known() {
        let body = r#"{"status":"success","data":{"resultType":"matrix","result":[
            {"metric":{},"values":[[10,"1"],[20,"+Inf"],[30,"3"]]}]}}"#;
        let (lines, _) = lines(body).unwrap();
        assert_eq!(lines[0].values, [(10.0, 1.0), (30.0, 3.0)]);
    }

    #[test]
    fn errors_are_those_of_the_server_and_all_else_is_no_prometheus() {
        let refused = r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#;
        assert_eq!(values(refused), Err(Some("parse error".to_owned())));
        for body in ["<html>", "", "[]", "{}", r#"{"status":"success"}"#] {
            assert_eq!(values(body), Err(None), "{body}");
        }
    }
}
