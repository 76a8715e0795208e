//! What the HTTP interface of Prometheus answers, as series with labels. Pure.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A series.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    pub(super) labels: BTreeMap<String, String>,
    /// By seconds since 1970, the oldest first: one where the query is of one time. Never empty.
    pub(super) points: Vec<(f64, f64)>,
}

impl Series {
    /// The newest.
    pub(super) fn value(&self) -> f64 {
        self.points.last().map_or(f64::NAN, |(_, value)| *value)
    }

    /// A label; empty where it has none.
    pub(super) fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }
}

/// The series of an answer that have a value, and what the server could not read for it.
pub(super) type Answer = (Vec<Series>, Vec<String>);

#[derive(Deserialize)]
struct Body {
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
    result: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    #[serde(default)]
    metric: BTreeMap<String, String>,
    /// Of a query of one time.
    #[serde(default)]
    value: Option<Point>,
    /// Of one over a time.
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

/// What the body of a response says.
///
/// # Errors
/// What the server says is wrong; `None` where it does not speak as Prometheus does.
pub(super) fn parse(body: &str) -> Result<Answer, Option<String>> {
    let answer: Body = serde_json::from_str(body).map_err(|_| None)?;
    let found = match (answer.status.as_str(), answer.data) {
        ("success", Some(data)) => data.result,
        ("error", _) => return Err(Some(answer.error.unwrap_or_default())),
        _ => return Err(None),
    };
    let series = found.into_iter().map(|found| Series {
        points: found
            .value
            .iter()
            .chain(&found.values)
            .filter_map(Point::finite)
            .collect(),
        labels: found.metric,
    });
    let series = series.filter(|series| !series.points.is_empty());
    Ok((series.collect(), answer.warnings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_with_their_labels_and_what_is_no_number_is_left_out() {
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
    fn series_over_a_time_have_the_points_that_are_known() {
        let body = r#"{"status":"success","data":{"resultType":"matrix","result":[
            {"metric":{},"values":[[10,"1"],[20,"+Inf"],[30,"3"]]}]}}"#;
        let (series, _) = parse(body).unwrap();
        assert_eq!(series[0].points, [(10.0, 1.0), (30.0, 3.0)]);
    }

    #[test]
    fn errors_are_those_of_the_server_and_all_else_is_no_prometheus() {
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
