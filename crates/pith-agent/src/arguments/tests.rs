use super::*;
use proptest::prelude::*;
use serde_json::json;

fn object(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

fn run(parameters: &Value, arguments: &Value) -> Result<Value, String> {
    let schema = ArgumentSchema::new(Arc::new(parameters.clone()));
    schema.check("probe", &object(arguments.clone())).map(Value::Object)
}

/// Checks that `value`, as member `v` with the given schema, is converted to `expected`.
#[track_caller]
fn becomes(schema: Value, value: Value, expected: Value) {
    let parameters = json!({"type": "object", "properties": {"v": schema}, "required": ["v"]});
    assert_eq!(run(&parameters, &json!({"v": value})), Ok(json!({"v": expected})));
}

/// Returns the lines between the first line and the arguments of the error text.
#[track_caller]
fn problems_of(parameters: Value, arguments: Value) -> Vec<String> {
    let text = run(&parameters, &arguments).expect_err("is refused");
    let body = text.strip_prefix("Validation failed for tool \"probe\":\n").expect("starts with the head line");
    let (lines, raw) = body.split_once("\n\nReceived arguments:\n").expect("has the arguments");
    assert_eq!(serde_json::from_str::<Value>(raw).expect("JSON"), arguments);
    lines.lines().map(|line| line.strip_prefix("  - ").expect("is a list item").to_owned()).collect()
}

/// Checks that `value`, as member `v`, is refused with exactly this reason.
#[track_caller]
fn refused(schema: Value, value: Value, problem: &str) {
    let parameters = json!({"type": "object", "properties": {"v": schema}, "required": ["v"]});
    assert_eq!(problems_of(parameters, json!({"v": value})), [problem]);
}

#[test]
fn text_booleans_and_null_become_numbers() {
    let number = || json!({"type": "number"});
    becomes(number(), json!("5"), json!(5));
    becomes(number(), json!("  -2.5e1 "), json!(-25));
    becomes(number(), json!("0.1"), json!(0.1));
    becomes(number(), json!("9007199254740993"), json!(9_007_199_254_740_993_i64));
    becomes(number(), json!(true), json!(1));
    becomes(number(), json!(false), json!(0));
    becomes(number(), json!(null), json!(0));
    becomes(number(), json!(1.5), json!(1.5));
    for text in ["", "  ", "five", "inf", "NaN", "1 2", "1e999"] {
        refused(number(), json!(text), "v: must be number");
    }
    refused(number(), json!([1]), "v: must be number");
}

#[test]
fn only_integral_values_become_integers() {
    let integer = || json!({"type": "integer"});
    becomes(integer(), json!("12"), json!(12));
    becomes(integer(), json!("3.0"), json!(3));
    becomes(integer(), json!(3.0), json!(3.0));
    becomes(integer(), json!(true), json!(1));
    becomes(integer(), json!(null), json!(0));
    refused(integer(), json!("3.5"), "v: must be integer");
    refused(integer(), json!(3.5), "v: must be integer");
}

#[test]
fn words_and_bits_become_booleans() {
    let boolean = || json!({"type": "boolean"});
    becomes(boolean(), json!("true"), json!(true));
    becomes(boolean(), json!("false"), json!(false));
    becomes(boolean(), json!(1), json!(true));
    becomes(boolean(), json!(0), json!(false));
    becomes(boolean(), json!(0.0), json!(false));
    becomes(boolean(), json!(null), json!(false));
    for value in [json!("yes"), json!("TRUE"), json!(""), json!(2), json!([])] {
        refused(boolean(), value, "v: must be boolean");
    }
}

#[test]
fn scalars_become_strings() {
    let string = || json!({"type": "string"});
    becomes(string(), json!(5), json!("5"));
    becomes(string(), json!(5.0), json!("5"));
    becomes(string(), json!(0.25), json!("0.25"));
    becomes(string(), json!(true), json!("true"));
    becomes(string(), json!(null), json!(""));
    refused(string(), json!({}), "v: must be string");
    refused(string(), json!(["a"]), "v: must be string");
}

#[test]
fn empty_values_become_null() {
    let null = || json!({"type": "null"});
    becomes(null(), json!(""), json!(null));
    becomes(null(), json!(0), json!(null));
    becomes(null(), json!(false), json!(null));
    refused(null(), json!("x"), "v: must be null");
    refused(null(), json!(1), "v: must be null");
    refused(null(), json!(true), "v: must be null");
}

#[test]
fn type_lists_keep_a_match_and_otherwise_take_the_first_change() {
    becomes(json!({"type": ["number", "string"]}), json!("5"), json!("5"));
    becomes(json!({"type": ["number", "boolean"]}), json!("5"), json!(5));
    becomes(json!({"type": ["number", "boolean"]}), json!("true"), json!(true));
    becomes(json!({"type": ["object", "integer"]}), json!(null), json!(0));
    refused(json!({"type": ["boolean", "number"]}), json!("x"), "v: must be either boolean or number");
}

#[test]
fn combined_schemas_convert_by_the_member_that_accepts() {
    becomes(json!({"allOf": [{"type": "number"}, {"minimum": 3}]}), json!("5"), json!(5));
    becomes(json!({"allOf": [{"type": "string"}, {"minLength": 1}]}), json!(7), json!("7"));
    // A member that accepts the value unchanged wins over one that would convert it.
    becomes(json!({"anyOf": [{"type": "number"}, {"type": "string"}]}), json!("5"), json!("5"));
    becomes(json!({"anyOf": [{"type": "number"}, {"type": "boolean"}]}), json!("true"), json!(true));
    becomes(
        json!({"oneOf": [{"type": "integer", "minimum": 10}, {"type": "integer", "maximum": 5}]}),
        json!("3"),
        json!(3),
    );
    becomes(
        json!({"anyOf": [
            {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]},
            {"type": "object", "properties": {"b": {"type": "boolean"}}, "required": ["b"]},
        ]}),
        json!({"b": "true"}),
        json!({"b": true}),
    );
    refused(json!({"anyOf": [{"type": "number"}, {"type": "boolean"}]}), json!("x"), "v: must match a schema in anyOf");
    refused(json!({"oneOf": [{"minimum": 1}, {"minimum": 2}]}), json!(3), "v: must match exactly one schema in oneOf");
    refused(json!({"not": {"type": "string"}}), json!("x"), "v: must not be valid");
}

#[test]
fn unions_convert_wherever_they_stand() {
    let union = json!({"anyOf": [{"type": "number"}, {"$ref": "#/$defs/flag"}]});
    let parameters = json!({"type": "object",
        "properties": {"a/b~c": {"type": "array", "items": union}, "rest": {"type": "object", "additionalProperties": union}},
        "$defs": {"flag": {"type": "boolean"}}});
    let arguments = json!({"a/b~c": ["1", true], "rest": {"x": "2"}});
    assert_eq!(run(&parameters, &arguments), Ok(json!({"a/b~c": [1, true], "rest": {"x": 2}})));
}

#[test]
fn nested_members_are_converted() {
    let number = json!({"type": "number"});
    becomes(
        json!({"type": "object", "properties": {"a": number}}),
        json!({"a": "1", "b": "1"}),
        json!({"a": 1, "b": "1"}),
    );
    becomes(
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": number}),
        json!({"a": 1, "b": "1"}),
        json!({"a": "1", "b": 1}),
    );
    becomes(json!({"type": "array", "items": number}), json!(["1", "2"]), json!([1, 2]));
    becomes(json!({"type": "array", "items": [number, {"type": "string"}]}), json!(["1", 2]), json!([1, "2"]));
    becomes(
        json!({"type": "array", "prefixItems": [{"type": "string"}], "items": number}),
        json!([1, "2"]),
        json!(["1", 2]),
    );
}

#[test]
fn absent_members_sent_as_null_are_dropped() {
    let check = |schema: Value, arguments: Value, expected: Value| {
        let parameters = json!({"type": "object", "properties": schema, "required": ["must"],
            "$defs": {"text": {"type": ["string", "null"]}}});
        let mut arguments = arguments;
        arguments["must"] = json!("x");
        let mut expected = expected;
        expected["must"] = json!("x");
        assert_eq!(run(&parameters, &arguments), Ok(expected));
    };
    check(json!({"a": {"type": "number"}}), json!({"a": null}), json!({}));
    check(json!({"a": {"enum": ["x", "y"]}}), json!({"a": null}), json!({}));
    check(json!({"a": {"anyOf": [{"type": "number"}, {"const": "x"}]}}), json!({"a": null}), json!({}));
    // These accept null, may accept it, or do not mention it.
    check(json!({"a": {"type": ["number", "null"]}}), json!({"a": null}), json!({"a": null}));
    check(json!({"a": {"anyOf": [{"type": "number"}, {"type": "null"}]}}), json!({"a": null}), json!({"a": null}));
    check(json!({"a": {"enum": ["x", null]}}), json!({"a": null}), json!({"a": null}));
    check(json!({"a": {"$ref": "#/$defs/text"}}), json!({"a": null}), json!({"a": null}));
    check(json!({"a": {}}), json!({"a": null, "unknown": null}), json!({"a": null, "unknown": null}));
    // Deeper levels.
    let inner = json!({"type": "object", "properties": {"b": {"type": "number"}}});
    check(json!({"a": inner}), json!({"a": {"b": null}}), json!({"a": {}}));
    check(json!({"a": {"type": "array", "items": inner}}), json!({"a": [{"b": null}]}), json!({"a": [{}]}));
}

#[test]
fn required_null_is_converted_not_dropped() {
    becomes(json!({"type": "string"}), json!(null), json!(""));
    refused(json!({"type": "array"}), json!(null), "v: must be array");
}

#[test]
fn the_error_names_tool_problems_and_arguments() {
    let parameters = json!({"type": "object", "required": ["command"], "properties": {"command": {"type": "string"}}});
    let schema = ArgumentSchema::new(Arc::new(parameters));
    assert_eq!(
        schema.check("bash", &object(json!({"cmd": 1}))),
        Err("Validation failed for tool \"bash\":\n  - command: must have required properties command\n\n\
             Received arguments:\n{\n  \"cmd\": 1\n}"
            .to_owned())
    );
}

#[test]
fn errors_name_the_path_of_the_member() {
    let edits = json!({"type": "object", "required": ["path", "edits"], "properties": {
        "path": {"type": "string"},
        "edits": {"type": "array", "items": {"type": "object", "required": ["oldText", "newText"],
            "properties": {"oldText": {"type": "string"}, "newText": {"type": "string"}}}}}});
    let check = |arguments: Value, expected: &[&str]| {
        let mut problems = problems_of(edits.clone(), arguments);
        problems.sort();
        assert_eq!(problems, expected);
    };
    check(json!({}), &["path: must have required properties path, edits"]);
    check(json!({"path": "a", "edits": "x"}), &["edits: must be array"]);
    check(
        json!({"path": "a", "edits": [{"oldText": "x", "newText": "y"}, {"oldText": {}}]}),
        &["edits.1.newText: must have required properties newText", "edits.1.oldText: must be string"],
    );
}

#[test]
fn errors_say_what_the_value_must_be() {
    refused(json!({"enum": ["a", "b"]}), json!("c"), "v: must be equal to one of the allowed values");
    refused(json!({"const": 1}), json!(2), "v: must be equal to constant");
    refused(json!({"minimum": 1}), json!(0), "v: must be >= 1");
    refused(json!({"maximum": 1.5}), json!(2), "v: must be <= 1.5");
    refused(json!({"exclusiveMinimum": 1}), json!(1), "v: must be > 1");
    refused(json!({"exclusiveMaximum": 1}), json!(1), "v: must be < 1");
    refused(json!({"multipleOf": 2}), json!(3), "v: must be multiple of 2");
    refused(json!({"minLength": 2}), json!("a"), "v: must not have fewer than 2 characters");
    refused(json!({"maxLength": 2}), json!("abc"), "v: must not have more than 2 characters");
    refused(json!({"pattern": "^a+$"}), json!("b"), "v: must match pattern \"^a+$\"");
    refused(json!({"minItems": 1}), json!([]), "v: must not have fewer than 1 items");
    refused(json!({"maxItems": 1}), json!([1, 2]), "v: must not have more than 1 items");
    refused(json!({"uniqueItems": true}), json!([1, 1]), "v: must not have duplicate items");
    refused(json!({"contains": {"const": 1}}), json!([2]), "v: must contain at least 1 valid item");
    refused(json!({"minProperties": 1}), json!({}), "v: must not have fewer than 1 properties");
    refused(json!({"maxProperties": 0}), json!({"a": 1}), "v: must not have more than 0 properties");
    refused(json!(false), json!(1), "v: schema is false");
    refused(
        json!({"type": "object", "additionalProperties": false}),
        json!({"a": 1}),
        "v: must not have additional properties",
    );
    refused(
        json!({"type": "object", "propertyNames": {"maxLength": 1}}),
        json!({"ab": 1}),
        "v: has an invalid property name: must not have more than 1 characters",
    );
    assert_eq!(
        problems_of(json!({"type": "object", "additionalProperties": false}), json!({"a": 1})),
        ["root: must not have additional properties"]
    );
}

#[test]
fn an_endless_list_of_problems_is_cut() {
    let parameters = json!({"properties": {"v": {"items": {"type": "object"}}}});
    let problems = problems_of(parameters, json!({"v": vec![1; 100]}));
    assert_eq!(problems.len(), MAX_PROBLEMS + 1);
    assert_eq!(problems[0], "v.0: must be object");
    assert_eq!(problems[MAX_PROBLEMS], "and 68 more");
}

#[test]
fn the_given_arguments_are_not_touched() {
    let schema = ArgumentSchema::new(Arc::new(json!({"properties": {"n": {"type": "number"}}})));
    let given = object(json!({"n": "5"}));
    let used = schema.check("probe", &given).expect("is converted");
    assert_eq!((given, used), (object(json!({"n": "5"})), object(json!({"n": 5}))));
}

#[test]
fn formats_are_held_as_peers_hold_them() {
    for (format, good, bad) in [
        ("uri", "https://example.com/a?b=c#d", "words"),
        ("uri", "localhost:8080", "example.com"),
        ("url", "http://localhost:3000/x", "words"),
        ("url", "http://ä.example/", "http://a b"),
        ("email", "nobody@example.com", "nobody"),
        ("date-time", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00"),
        ("date", "2024-02-29", "2023-02-29"),
        ("time", "10:00:00Z", "10:00"),
        ("duration", "PT1H", "1h"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567"),
        ("ipv4", "127.0.0.1", "127.0.0"),
        ("ipv6", "::1", "1::2::3"),
        ("hostname", "a.example", "a_b"),
        ("regex", "^a+$", "("),
    ] {
        let schema = json!({"type": "string", "format": format});
        becomes(schema.clone(), json!(good), json!(good));
        refused(schema, json!(bad), &format!("v: must match format \"{format}\""));
    }
    // Formats say nothing about other types, and names that nobody knows say nothing at all.
    becomes(json!({"format": "uri"}), json!(5), json!(5));
    becomes(json!({"type": "string", "format": "summary"}), json!("words"), json!("words"));
    becomes(json!({"anyOf": [{"type": "string", "format": "uri"}, {"type": "number"}]}), json!("5"), json!(5));
}

#[test]
fn a_schema_that_cannot_be_used_lets_the_call_through_as_it_is() {
    let arguments = json!({"v": "5", "gone": null});
    let mut deep = json!({"type": "number"});
    for _ in 0..MAX_DEPTH {
        deep = json!({"properties": {"v": deep}});
    }
    for schema in [
        json!("number"),
        json!(7),
        json!(null),
        json!([]),
        json!({"type": "nonsense"}),
        json!({"type": 5}),
        json!({"properties": {"v": {"type": "number"}}, "required": "v"}),
        json!({"properties": {"v": {"$ref": "#/$defs/missing"}}}),
        json!({"properties": {"v": {"$ref": "https://example.com/schema.json"}}}),
        json!({"properties": {"v": {"$ref": "file:///etc/passwd"}}}),
        json!({"properties": {"v": {"pattern": "("}}}),
        deep,
    ] {
        assert_eq!(run(&schema, &arguments), Ok(arguments.clone()), "{schema}");
    }
}

#[test]
fn arguments_nested_too_deeply_are_refused() {
    let mut deep = json!(1);
    for _ in 0..MAX_DEPTH {
        deep = json!([deep]);
    }
    let parameters = json!({"properties": {"v": {"items": {"$ref": "#/properties/v"}}}});
    assert!(run(&parameters, &json!({"v": deep})).is_ok());
    let text = run(&parameters, &json!({"v": [deep]})).expect_err("is refused");
    assert!(text.starts_with("Validation failed for tool \"probe\":\n  - root: is nested too deeply\n\nReceived"));
}

#[test]
fn the_deepest_schema_that_is_used_fits_the_stack() {
    let (mut schema, mut arguments, mut expected) = (json!({"type": "number"}), json!("5"), json!(5));
    for _ in 0..MAX_DEPTH / 2 - 1 {
        schema = json!({"properties": {"v": schema}});
        arguments = json!({"v": arguments});
        expected = json!({"v": expected});
    }
    assert_eq!(run(&schema, &arguments), Ok(expected));
}

#[test]
fn look_ahead_works_and_runaway_patterns_are_given_up() {
    let schema = json!({"pattern": "^(?!\\.)a+$"});
    becomes(schema.clone(), json!("aaa"), json!("aaa"));
    refused(schema, json!(".a"), "v: must match pattern \"^(?!\\.)a+$\"");
    // Exponential in a backtracking engine without a limit.
    let text = format!("{}!", "a".repeat(200));
    becomes(json!({"pattern": "^(?:a(?=a|!)|aa(?=a|!))+$"}), json!(text), json!(text));
}

fn any_json(depth: u32) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c0-9/~. ]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(depth, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-c]", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn any_schema() -> impl Strategy<Value = Value> {
    let types = prop::sample::select(vec!["null", "boolean", "string", "number", "integer", "array", "object"]);
    let leaf = prop_oneof![
        types.clone().prop_map(|name| json!({"type": name})),
        prop::collection::vec(types, 1..3).prop_map(|names| json!({"type": names})),
        any_json(1).prop_map(|value| json!({"const": value})),
        any_json(1).prop_map(|value| json!({"enum": [value, 1]})),
        (-3..3i32).prop_map(|limit| json!({"minimum": limit, "maxLength": limit.unsigned_abs()})),
        Just(json!({"$ref": "#"})),
        Just(json!({})),
        any_json(1), // mostly not a schema at all
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..3);
        prop_oneof![
            (prop::sample::select(vec!["allOf", "anyOf", "oneOf", "prefixItems", "items"]), list)
                .prop_map(|(keyword, members)| json!({keyword: members})),
            (prop::sample::select(vec!["items", "additionalProperties", "not"]), inner.clone())
                .prop_map(|(keyword, member)| json!({keyword: member})),
            ("[a-c]", inner, any::<bool>()).prop_map(|(name, member, required)| {
                let required = if required { vec![name.clone()] } else { vec![] };
                json!({"type": "object", "properties": {name: member}, "required": required})
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn valid_arguments_pass_unchanged_and_results_are_valid(schema in any_schema(), arguments in any_json(3)) {
        prop_assume!(arguments.is_object());
        let outcome = run(&schema, &arguments);
        let Ok(validator) = jsonschema::options().build(&schema) else { return Ok(()) };
        match outcome {
            Ok(used) if validator.is_valid(&arguments) => prop_assert_eq!(used, arguments),
            // What would take too long, as a reference to itself, is not checked.
            Ok(used) => prop_assert!(!is_checkable(&schema, &used) || validator.is_valid(&used)),
            Err(text) => {
                prop_assert!(!validator.is_valid(&arguments));
                prop_assert!(text.starts_with("Validation failed for tool \"probe\":\n  - "));
            }
        }
    }

    #[test]
    fn check_never_panics(schema in any_json(5), arguments in any_json(5)) {
        if arguments.is_object() {
            run(&schema, &arguments).ok();
        }
    }
}

#[test]
fn a_single_value_becomes_an_array_where_that_fits() {
    let list = |items: Value| json!({"type": "array", "items": items});
    let texts = || list(json!({"type": "string"}));
    becomes(texts(), json!("one"), json!(["one"]));
    becomes(texts(), json!(5), json!(["5"]));
    becomes(list(json!({"type": "integer"})), json!("5"), json!([5]));
    let point = json!({"type": "object", "properties": {"x": {"type": "number"}, "tags": texts()}, "required": ["x"]});
    becomes(list(point), json!({"x": "1", "tags": "a"}), json!([{"x": 1, "tags": ["a"]}]));
    becomes(json!({"type": "array"}), json!(true), json!([true]));
    becomes(json!({"type": ["array", "null"], "items": {"type": "string"}}), json!("a"), json!(["a"]));
    becomes(json!({"type": ["array", "string"]}), json!("a"), json!("a"));
    becomes(json!({"anyOf": [texts(), {"type": "null"}]}), json!("a"), json!(["a"]));
    becomes(json!({"type": "array", "prefixItems": [{"type": "number"}]}), json!("1"), json!([1]));
    // A value is put into one array, not into several.
    refused(list(texts()), json!("a"), "v: must be array");
    refused(list(json!({"type": "integer"})), json!("a"), "v: must be array");
    refused(json!({"type": "array", "minItems": 2}), json!("a"), "v: must be array");
    refused(texts(), json!(null), "v: must be array");
    // The items of this one were meant.
    refused(texts(), json!("[\"a\", \"b\"]"), "v: must be array");
}

#[test]
fn words_become_the_constants_they_are_written_like() {
    let of = |constants: Value| json!({"enum": constants});
    becomes(of(json!([1, "2", null])), json!("1"), json!(1));
    becomes(of(json!([1, "2", null])), json!(2), json!("2"));
    becomes(json!({"const": 3}), json!("3"), json!(3));
    becomes(json!({"type": ["string", "number"], "enum": [1, "a"]}), json!("1"), json!(1));
    becomes(json!({"anyOf": [{"const": "a"}, {"const": 5}]}), json!("5"), json!(5));
    // Where it is unclear which one is meant, none is.
    becomes(of(json!([1, "1"])), json!("1"), json!("1"));
    refused(of(json!([true, "x"])), json!(1), "v: must be equal to one of the allowed values");
    refused(of(json!([1, 2])), json!("3"), "v: must be equal to one of the allowed values");
}

#[test]
fn what_a_reference_describes_is_converted() {
    let definitions = json!({
        "P": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}, "required": ["x"]},
        "Tree": {"type": "object", "properties": {
            "n": {"type": "integer"}, "next": {"$ref": "#/$defs/Tree"}, "all": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}},
        "Loop": {"$ref": "#/$defs/Loop", "type": "number"},
        "Nest": {"type": "array", "items": {"$ref": "#/$defs/Nest"}},
        "Here": {"$anchor": "here", "type": "integer"},
        "a/b~c": {"type": "boolean"},
        "Own": {"$id": "own.json", "type": "object", "properties": {"k": {"$ref": "#/$defs/K"}}, "$defs": {"K": {"type": "number"}}},
        "K": {"type": "string"},
    });
    let check = |schema: Value, value: Value, expected: Value| {
        for id in [None, Some("https://example.com/schema"), Some("https://example.com/schema#")] {
            let mut parameters = json!({"type": "object", "properties": {"v": schema}, "$defs": definitions});
            if let Some(id) = id {
                parameters["$id"] = json!(id);
            }
            assert_eq!(run(&parameters, &json!({"v": value})), Ok(json!({"v": expected})), "{id:?}");
        }
    };
    let to = |name: &str| json!({"$ref": format!("#/$defs/{name}")});
    check(to("P"), json!({"x": "1"}), json!({"x": 1}));
    // What is null and optional was left out.
    check(to("P"), json!({"x": "1", "y": null}), json!({"x": 1}));
    check(json!({"anyOf": [to("P"), {"type": "null"}]}), json!({"x": "1"}), json!({"x": 1}));
    check(json!({"type": "array", "items": to("P")}), json!({"x": "1"}), json!([{"x": 1}]));
    let tree = json!({"n": "1", "next": {"n": "2", "all": {"n": "3"}}});
    check(to("Tree"), tree, json!({"n": 1, "next": {"n": 2, "all": [{"n": 3}]}}));
    check(json!({"$ref": "#here"}), json!("7"), json!(7));
    check(to("a~1b~0c"), json!("true"), json!(true));
    check(to("Nest"), json!([[]]), json!([[]]));
    let absolute = json!({"$ref": "https://example.com/schema#/$defs/P"});
    let parameters = json!({"$id": "https://example.com/schema", "type": "object", "properties": {"v": absolute}, "$defs": definitions});
    assert_eq!(run(&parameters, &json!({"v": {"x": "1"}})), Ok(json!({"v": {"x": 1}})));
    // Inside of a part with an id of its own, the same reference means something else.
    check(to("Own"), json!({"k": "4"}), json!({"k": 4}));
}

#[test]
fn schemas_that_lead_round_or_fan_out_are_left_in_time() {
    let fan: Map<String, Value> = (0..30)
        .map(|n| {
            let next = json!({"$ref": format!("#/$defs/F{}", n + 1)});
            (format!("F{n}"), json!({"type": "array", "items": {"anyOf": [next, next, {"allOf": [next]}]}}))
        })
        .collect();
    let mut definitions = fan;
    definitions.insert("F30".to_owned(), json!({"type": "array"}));
    definitions.insert("Nest".to_owned(), json!({"type": "array", "items": {"$ref": "#/$defs/Nest"}}));
    definitions.insert(
        "Round".to_owned(),
        json!({"anyOf": [{"$ref": "#/$defs/Round"}, {"type": "array", "items": {"$ref": "#/$defs/Round"}}]}),
    );
    for (name, value) in [
        ("F0", json!("x")),
        ("F0", json!([["x"]])),
        ("Nest", json!("x")),
        ("Nest", json!([["x"]])),
        ("Round", json!("x")),
    ] {
        let parameters =
            json!({"type": "object", "properties": {"v": {"$ref": format!("#/$defs/{name}")}}, "$defs": definitions});
        // Whatever comes of it: it ends, and never with an array in an array that nobody sent.
        if let Ok(checked) = run(&parameters, &json!({"v": value})) {
            assert!(checked["v"] == value || checked["v"] == json!([value]), "{name}: {checked}");
        }
    }
}

/// A schema without references, of the kinds that conversions know.
fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "number"})),
        Just(json!({"type": "integer", "minimum": 2})),
        Just(json!({"type": "boolean"})),
        Just(json!({"type": "string", "minLength": 1})),
        Just(json!({"type": ["null", "number"]})),
        Just(json!({"enum": ["a", 1, null]})),
    ];
    leaf.prop_recursive(3, 24, 3, |inner| {
        let member = inner.clone();
        prop_oneof![
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| json!({"type": "object", "properties": {"a": a, "b": b}, "required": ["a"]})),
            (inner.clone(), inner).prop_map(|(a, b)| json!({"anyOf": [a, b]})),
            member.prop_map(|schema| json!({"allOf": [schema]})),
        ]
    })
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(1)),
        Just(json!(5)),
        Just(json!("")),
        Just(json!("a")),
        Just(json!("5")),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::btree_map("[abc]", inner, 0..3).prop_map(|members| json!(members)),
        ]
    })
}

/// Moves each sub-schema to the definitions and refers to it instead.
fn referring(schema: &Value, definitions: &mut Map<String, Value>, base: &str) -> Value {
    let mut moved = schema.clone();
    for keyword in ["items", "anyOf", "allOf"] {
        match moved.get_mut(keyword) {
            Some(Value::Array(members)) => {
                members.iter_mut().for_each(|member| *member = referring(member, definitions, base))
            }
            Some(member) => *member = referring(member, definitions, base),
            None => {}
        }
    }
    if let Some(Value::Object(properties)) = moved.get_mut("properties") {
        properties.values_mut().for_each(|member| *member = referring(member, definitions, base));
    }
    let name = format!("D{}", definitions.len());
    definitions.insert(name.clone(), moved);
    json!({"$ref": format!("{base}#/$defs/{name}")})
}

proptest! {
    #[test]
    fn a_schema_with_references_converts_like_the_same_without(schema in schemas(), value in values(), has_id in any::<bool>()) {
        let id = "https://example.com/schema";
        let mut definitions = Map::new();
        let reference = referring(&schema, &mut definitions, if has_id { id } else { "" });
        let plain = json!({"type": "object", "properties": {"v": schema}});
        let mut referring = json!({"type": "object", "properties": {"v": reference}, "$defs": definitions});
        if has_id {
            referring["$id"] = json!(id);
        }
        let arguments = json!({"v": value});
        prop_assert_eq!(run(&referring, &arguments).ok(), run(&plain, &arguments).ok());
    }
}
