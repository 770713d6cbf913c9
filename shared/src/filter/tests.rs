use proptest::prelude::*;

use super::*;

fn term(field: &str, operator: Operator, value: &str) -> Expr {
    Expr::Term(Term { field: field.to_owned(), operator, value: Value::new(value) })
}

fn equal(field: &str, value: &str) -> Expr {
    term(field, Operator::Equal, value)
}

fn not(expr: Expr) -> Expr {
    Expr::Not(Box::new(expr))
}

#[test]
fn texts_become_trees() {
    let (a, b, c) = (equal("a", "1"), equal("b", "2"), equal("c", "3"));
    for (text, expected) in [
        ("a=1", a.clone()),
        ("(a=1)", a.clone()),
        ("a=", equal("a", "")),
        ("a=1&b=2", Expr::And(vec![a.clone(), b.clone()])),
        ("a=1|2", Expr::Or(vec![a.clone(), equal("a", "2")])),
        ("b=2&a=1|2", Expr::And(vec![b.clone(), Expr::Or(vec![a.clone(), equal("a", "2")])])),
        ("(a=1|2)&b=2", Expr::And(vec![Expr::Or(vec![a.clone(), equal("a", "2")]), b.clone()])),
        ("a!=1|2", not(Expr::Or(vec![a.clone(), equal("a", "2")]))),
        (r"a=1|x\=y", Expr::Or(vec![a.clone(), equal("a", "x=y")])),
        ("a=1|2|b=2", Expr::Or(vec![Expr::Or(vec![a.clone(), equal("a", "2")]), b.clone()])),
        ("a~x|y", Expr::Or(vec![term("a", Operator::Prefix, "x"), term("a", Operator::Prefix, "y")])),
        ("a=1|b=2&c=3", Expr::Or(vec![a.clone(), Expr::And(vec![b.clone(), c.clone()])])),
        ("(a=1|b=2)&c=3", Expr::And(vec![Expr::Or(vec![a.clone(), b.clone()]), c.clone()])),
        ("!a=1", not(a.clone())),
        ("a!=1", not(a.clone())),
        ("!a!=1", not(not(a.clone()))),
        ("!(a=1|b=2)", not(Expr::Or(vec![a.clone(), b.clone()]))),
        ("!a=1&b=2", Expr::And(vec![not(a), b])),
        ("a~x", term("a", Operator::Prefix, "x")),
        ("a!~x", not(term("a", Operator::Prefix, "x"))),
        ("a<5", term("a", Operator::Less, "5")),
        ("a>5", term("a", Operator::Greater, "5")),
        ("a<=5", term("a", Operator::AtMost, "5")),
        ("a>=5", term("a", Operator::AtLeast, "5")),
        (r"a<\=5", term("a", Operator::Less, "=5")),
        ("name=Te st", equal("name", "Te st")),
        ("name=a=b!c<d>e~f,g", equal("name", "a=b!c<d>e~f,g")),
        ("name=shoe (red) 7", equal("name", "shoe (red) 7")),
        ("(name=shoe (red))", equal("name", "shoe (red)")),
        (r"name=a\&b\|c\(d\)e\\f\,g", equal("name", r"a&b|c(d)e\f,g")),
        (r"name=C:\dir", equal("name", r"C:\dir")),
        (r"name=x\", equal("name", r"x\")),
        ("identifiers.gs1:21=v", equal("identifiers.gs1:21", "v")),
        (r"customFields.a\=b=c", equal("customFields.a=b", "c")),
        ("a =1", equal("a ", "1")),
        ("name=paged ü+ 100%", equal("name", "paged ü+ 100%")),
    ] {
        assert_eq!(text.parse(), Ok(expected), "{text}");
    }
}

#[test]
fn faults_have_a_place() {
    for (text, position, what) in [
        ("", 1, "the name of a field"),
        ("name", 5, "one of = ~"),
        ("ü", 2, "one of = ~"),
        ("=x", 1, "the name of a field"),
        ("a=1&", 5, "the name of a field"),
        ("a=1|", 5, "the name of a field"),
        ("a=1|b(c)", 6, "one of = ~"),
        (&format!("a={}", ["1"; 65].join("|")), 131, "more than 64 conditions"),
        ("a=1||b=2", 5, "the name of a field"),
        ("a=1)", 4, "unpaired )"),
        ("(a=1", 5, "expected )"),
        ("a=(1", 5, "expected )"),
        ("()", 2, "the name of a field"),
        ("a!b=1", 3, "one of = ~"),
        ("a&b=1", 2, "one of = ~"),
        ("a(b)=1", 2, "one of = ~"),
        (&format!("{}a=1{}", "(".repeat(17), ")".repeat(17)), 18, "nested deeper than 16"),
        (&format!("{}a=1", "!".repeat(17)), 18, "nested deeper than 16"),
        // Printed, it has one negation more in front.
        (&format!("{}a!=1", "!".repeat(16)), 21, "nested deeper than 16"),
        // Printed, it has parentheses around the values; with both, it is two levels deeper.
        (&format!("{}a=1|2", "!".repeat(16)), 22, "nested deeper than 16"),
        (&format!("{}a!=1|2", "!".repeat(15)), 22, "nested deeper than 16"),
        (&["a=1"; 65].join("&"), 257, "more than 64 conditions"),
        (&format!("a={}", "x".repeat(4_095)), 1, "at most 4096 bytes"),
    ] {
        let fault = text.parse::<Expr>().unwrap_err();
        assert_eq!(fault.position, position, "{text}: {fault}");
        assert!(fault.what.contains(what), "{text}: {fault}");
    }
    assert!(format!("{}a=1{}", "(".repeat(16), ")".repeat(16)).parse::<Expr>().is_ok());
    for deepest in [format!("{}a=1|2", "!".repeat(15)), format!("{}a!=1|2", "!".repeat(14))] {
        let filter = deepest.parse::<Expr>().unwrap();
        assert_eq!(filter.to_string().parse::<Expr>(), Ok(filter), "{deepest}");
    }
    assert!(["a=1"; 64].join("&").parse::<Expr>().is_ok());
    let fault = "name=x&color".parse::<Expr>().unwrap_err().to_string();
    assert_eq!(fault, "expected one of = ~ < > <= >= at character 13");
}

#[test]
fn terms_are_evaluated_on_facts() {
    let text = Fact::Text;
    for (condition, fact, expected) in [
        ("a=x", text("x"), true),
        ("a=x", text("X"), false),
        ("a=1", text("1.0"), false),
        ("a=1.0", Fact::Number(1.0), true),
        ("a=x", Fact::Number(1.0), false),
        ("a~", text(""), true),
        ("a~ab", text("abc"), true),
        ("a~ab", text("a"), false),
        ("a~17", Fact::Number(1_760_000_000_000.0), true),
        ("a<10", text("9"), true),
        ("a<10", text("x"), false),
        ("a<b", text("abc"), true),
        ("a<b", Fact::Number(1.0), false),
        ("a<=1", Fact::Number(1.0), true),
        ("a<1", Fact::Number(1.0), false),
        ("a>=1", Fact::Number(1.0), true),
        ("a>0.5", Fact::Number(1.0), true),
        ("a>inf", Fact::Number(1.0), false),
    ] {
        let Ok(Expr::Term(term)) = condition.parse() else { panic!("{condition}") };
        assert_eq!(term.admits(fact), expected, "{condition} of {fact:?}");
    }
}

#[test]
fn evaluation_stops_as_soon_as_the_result_is_known() {
    let expr: Expr = "a=1&(b=1|!c=1)".parse().unwrap();
    for (facts, expected, looks) in
        [("a", true, "abc"), ("ab", true, "ab"), ("ac", false, "abc"), ("b", false, "a")]
    {
        let mut seen = String::new();
        let holds = expr.eval(&mut |term| {
            seen.push_str(&term.field);
            facts.contains(&term.field)
        });
        assert_eq!((holds, seen.as_str()), (expected, looks), "{facts}");
    }
    let names: Vec<&str> = expr.terms().iter().map(|term| term.field.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    let numbered = expr.clone().try_map(&mut |Term { field, operator, value }| {
        let at = "ab".find(&field).ok_or(field)?;
        Ok::<_, String>(Term { field: at, operator, value })
    });
    assert_eq!(numbered, Err("c".to_owned()));
}

#[test]
fn filters_serialise_as_text() {
    let expr: Expr = r"a=x\&y|!b<3".parse().unwrap();
    let json = serde_json::to_string(&expr).unwrap();
    assert_eq!(json, r#""a=x\\&y|!b<3""#);
    assert_eq!(serde_json::from_str::<Expr>(&json).unwrap(), expr);
    assert!(serde_json::from_str::<Expr>("\"a\"").is_err());
}

fn any_term() -> impl Strategy<Value = Expr> {
    let operator = prop::sample::select(vec![
        Operator::Equal,
        Operator::Prefix,
        Operator::Less,
        Operator::AtMost,
        Operator::Greater,
        Operator::AtLeast,
    ]);
    (r"[a-z.&|!<>=~(),\\ ü]{1,8}", operator, r"[a-z0-9.&|!<>=~(),\\ ü]{0,8}")
        .prop_map(|(field, operator, value)| term(&field, operator, &value))
}

fn any_expr() -> impl Strategy<Value = Expr> {
    any_term().prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(Expr::And),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Expr::Or),
            inner.prop_map(not),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_printed_parses_to_the_same_tree(expr in any_expr()) {
        let text = expr.to_string();
        prop_assert_eq!(text.parse::<Expr>(), Ok(expr), "{}", text);
    }

    #[test]
    fn any_text_parses_or_has_a_fault_within_it(text in ".{0,60}") {
        check(&text)?;
    }

    #[test]
    fn any_text_of_signs_parses_or_has_a_fault_within_it(text in r"[ab1&|!<>=~(),\\ü]{0,60}") {
        check(&text)?;
    }
}

fn check(text: &str) -> Result<(), TestCaseError> {
    match text.parse::<Expr>() {
        Ok(expr) => prop_assert_eq!(expr.to_string().parse::<Expr>(), Ok(expr)),
        Err(fault) => prop_assert!((1..=text.chars().count() + 1).contains(&fault.position), "{}", fault),
    }
    Ok(())
}
