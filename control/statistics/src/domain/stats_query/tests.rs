use super::*;

const NOW: UnixMillis = UnixMillis(1_767_225_600_000 + 90 * 60 * 1_000);
const ID: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

fn parse(asked: Asked<'_>) -> Result<StatsQuery, Vec<String>> {
    StatsQuery::parse(&Asked { top: if asked.top == 0 { TOP.0 } else { asked.top }, ..asked }, NOW)
}

#[test]
fn without_parameters_it_is_the_last_week() {
    let query = parse(Asked::default()).unwrap();
    assert_eq!(query.range.hours(), 7 * 24);
    assert_eq!(
        i64::from(query.range.to) * HOUR_MS,
        1_767_225_600_000 + 2 * HOUR_MS,
        "the present hour is whole in it"
    );
    assert_eq!((query.periods.len(), query.series.number, query.project), (1, 1, None));
}

#[test]
fn groups_and_filters_choose_the_roll_ups() {
    let link = "link=tn.gg/A";
    let product = format!("product={ID}");
    let both = format!("project={ID}&country=DE|AT");
    for (group_by, filter, series, first, second) in [
        ("country", "", 2, None, None),
        ("region", "country=DE", 3, Some(vec!["DE"]), None),
        ("", "country=DE", 2, Some(vec!["DE"]), None),
        ("country", product.as_str(), 21, Some(vec![ID]), None),
        ("product", "country=DE|AT", 21, None, Some(vec!["DE", "AT"])),
        ("country,product", "", 21, None, None),
        ("", link, 24, Some(vec!["tn.gg/A"]), None),
        ("", both.as_str(), 2, Some(vec!["DE", "AT"]), None),
        ("project", "", 9, None, None),
    ] {
        let asked = Asked { group_by: Some(group_by), filter: Some(filter), ..Asked::default() };
        let query = parse(asked).unwrap_or_else(|faults| panic!("{group_by} {filter}: {faults:?}"));
        let texts = |values: Option<Vec<&str>>| {
            values.map(|all| all.into_iter().map(str::to_owned).collect::<Vec<_>>())
        };
        assert_eq!(
            (query.series.number, query.first, query.second),
            (series, texts(first), texts(second)),
            "{group_by} {filter}"
        );
    }
    let query = parse(Asked { group_by: Some("city"), ..Asked::default() }).unwrap();
    assert_eq!(query.group_by, [Dimension::Country, Dimension::City]);
    assert!(query.is_personal());
    let query = parse(Asked { filter: Some(&both), ..Asked::default() }).unwrap();
    assert_eq!(query.project, ID.parse().ok());
}

#[test]
fn old_ranges_are_answered_from_days() {
    let asked = Asked { from: Some("2023-01-01"), to: Some("2024-01-01"), ..Asked::default() };
    for interval in [None, Some("day"), Some("week"), Some("month")] {
        let query = parse(Asked { interval, ..asked }).unwrap();
        assert_eq!(query.parts.hours, [], "{interval:?}");
        assert_eq!(query.parts.days.iter().map(|part| part.to - part.from).sum::<i32>(), 365, "{interval:?}");
    }
    // Links are asked for by whole days.
    let query = parse(Asked { group_by: Some("link"), ..Asked::default() }).unwrap();
    assert_eq!((query.range.from % 24, query.range.hours(), query.parts.hours.len()), (0, 8 * 24, 0));
    // A value that is named twice counts once.
    let query = parse(Asked { filter: Some("country=DE|DE|AT"), ..Asked::default() }).unwrap();
    assert_eq!(query.first.unwrap(), ["DE", "AT"]);
}

#[test]
fn each_fault_names_its_parameter() {
    let one = format!("project={ID}");
    let two = format!("project={ID}|UKXAGyEf8SQ5eTDmVgGpHqAb");
    let many: Vec<String> = (0..60).map(|n| format!("country=C{n}")).collect();
    let many = many.join("|");
    for (asked, expected) in [
        (Asked { from: Some("x"), ..Asked::default() }, "from must be milliseconds"),
        (Asked { to: Some("2026-01-01T00:00:00"), ..Asked::default() }, "to must be milliseconds"),
        (
            Asked { from: Some("2026-01-02"), to: Some("2026-01-01"), ..Asked::default() },
            "from must be before to",
        ),
        (Asked { interval: Some("year"), ..Asked::default() }, "interval must be"),
        (Asked { time_zone: Some("Berlin"), ..Asked::default() }, "timeZone: \"Berlin\""),
        (
            Asked { time_zone: Some("Asia/Kolkata"), interval: Some("day"), ..Asked::default() },
            "timeZone: scans are counted by the hour",
        ),
        (Asked { group_by: Some("thng"), ..Asked::default() }, "groupBy: \"thng\""),
        (Asked { group_by: Some("country,country"), ..Asked::default() }, "groupBy names country twice"),
        (
            Asked { group_by: Some("country,language"), ..Asked::default() },
            "groupBy and filter: scans are not counted",
        ),
        (
            Asked { group_by: Some("city"), filter: Some("link=tn.gg/A"), ..Asked::default() },
            "groupBy and filter: scans",
        ),
        (
            Asked { filter: Some("country=DE|language=de"), ..Asked::default() },
            "filter: different dimensions",
        ),
        (Asked { filter: Some("country!=DE"), ..Asked::default() }, "filter: only conditions"),
        (Asked { filter: Some("country~D"), ..Asked::default() }, "filter: only conditions"),
        (
            Asked { filter: Some("country=DE&country=AT"), ..Asked::default() },
            "filter: country is named twice",
        ),
        (Asked { filter: Some("thng=x"), ..Asked::default() }, "filter: \"thng\" cannot"),
        (Asked { filter: Some("product=x"), ..Asked::default() }, "filter: \"x\" is no product"),
        (Asked { filter: Some("link=tn.gg"), ..Asked::default() }, "filter: \"tn.gg\" is no link"),
        (Asked { filter: Some("country"), ..Asked::default() }, "filter: "),
        (Asked { filter: Some(&many), ..Asked::default() }, "filter: country has more than 50"),
        (Asked { filter: Some(&two), ..Asked::default() }, "filter: only one project"),
        (
            Asked { group_by: Some("project"), filter: Some(&one), ..Asked::default() },
            "groupBy: the filter names one project already",
        ),
        (
            Asked { group_by: Some("link"), interval: Some("hour"), ..Asked::default() },
            "interval: links are counted by the day",
        ),
        (
            Asked {
                filter: Some("link=tn.gg/A"),
                interval: Some("day"),
                time_zone: Some("Asia/Tokyo"),
                ..Asked::default()
            },
            "timeZone: links are counted by the day of UTC",
        ),
        (
            Asked { filter: Some("link=tn.gg/A"), from: Some("2024-11-20"), ..Asked::default() },
            "from: counts of links are kept for 400 days",
        ),
        (
            Asked { from: Some("2024-11-20"), time_zone: Some("Europe/Berlin"), ..Asked::default() },
            "from: counts by the hour are kept for 400 days",
        ),
        (
            Asked { from: Some("2025-01-01"), interval: Some("hour"), ..Asked::default() },
            "from and to: the range may have at most 31 days by the hour",
        ),
        (
            Asked { from: Some("2025-10-01"), group_by: Some("link"), ..Asked::default() },
            "at most 31 days by link",
        ),
        (
            Asked { from: Some("2024-10-01"), interval: Some("day"), ..Asked::default() },
            "at most 400 days by the day",
        ),
        (Asked { from: Some("2010-01-01"), ..Asked::default() }, "at most 1830 days at all"),
        (
            Asked {
                from: Some("2025-12-04"),
                interval: Some("hour"),
                group_by: Some("country"),
                top: 1_000,
                ..Asked::default()
            },
            "top: ",
        ),
    ] {
        let faults = parse(asked).unwrap_err();
        assert!(
            faults.iter().any(|fault| fault.starts_with(expected) || fault.contains(expected)),
            "{asked:?}: {faults:?}"
        );
    }
    let faults =
        parse(Asked { from: Some("x"), interval: Some("y"), time_zone: Some("z"), ..Asked::default() })
            .unwrap_err();
    assert_eq!(faults.len(), 3, "every fault at once: {faults:?}");
}
