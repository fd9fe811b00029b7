//! Bodies of requests: values with placeholders.

use onceseal_core::json::{Object, Value};

use super::filling::{Filling, Given, Missing, plainly};

/// A value in whose texts placeholders may stand. A text that is nothing but an
/// argument is that argument, whatever its type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FilledValue {
    Plain(Value),
    Text(Filling),
    List(Vec<FilledValue>),
    Object(Vec<(String, FilledValue)>),
}

impl FilledValue {
    /// The variables of the secrets in it.
    pub(super) fn secrets(&self) -> Vec<String> {
        match self {
            FilledValue::Plain(_) => Vec::new(),
            FilledValue::Text(filling) => filling.secrets().collect(),
            FilledValue::List(items) => items.iter().flat_map(FilledValue::secrets).collect(),
            FilledValue::Object(members) => members.iter().flat_map(|(_, value)| value.secrets()).collect(),
        }
    }

    /// Reads a value.
    ///
    /// # Errors
    /// As [`Filling::parse`].
    pub(super) fn parse(value: &Value) -> Result<FilledValue, String> {
        Ok(match value {
            Value::Text(text) => FilledValue::Text(Filling::parse(text)?),
            Value::List(items) => {
                FilledValue::List(items.iter().map(FilledValue::parse).collect::<Result<_, _>>()?)
            }
            Value::Object(object) => {
                let members = object.iter();
                let members = members.map(|(name, value)| Ok((name.to_owned(), FilledValue::parse(value)?)));
                FilledValue::Object(members.collect::<Result<_, String>>()?)
            }
            value => FilledValue::Plain(value.clone()),
        })
    }

    /// The value with everything filled in. A member that is nothing but an
    /// absent argument is left out.
    pub(super) fn fill(&self, given: &Given<'_>) -> Result<Option<Value>, Missing> {
        Ok(Some(match self {
            FilledValue::Plain(value) => value.clone(),
            FilledValue::Text(filling) => match filling.argument() {
                Some(path) => return Ok(path.find(given.arguments).cloned()),
                None => Value::Text(filling.fill(given, plainly)?),
            },
            FilledValue::List(items) => {
                let items = items.iter().map(|item| Ok(item.fill(given)?.unwrap_or(Value::Null)));
                Value::List(items.collect::<Result<_, Missing>>()?)
            }
            FilledValue::Object(members) => {
                let mut object = Object::new();
                for (name, value) in members {
                    if let Some(value) = value.fill(given)? {
                        object.insert(name.as_str(), value);
                    }
                }
                Value::Object(object)
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use onceseal_core::json;

    use super::*;

    #[test]
    fn a_text_that_is_one_argument_is_that_argument_and_an_absent_one_is_left_out() {
        let mut customer = Object::new();
        customer.insert("id", "c/1 é");
        let mut arguments = Object::new();
        arguments.insert("amount", Value::Integer(5));
        arguments.insert("customer", Value::Object(customer));
        let given = Given { arguments: &arguments, provider_key: "osl_key" };
        let template = json::read(
            br#"{"amount":"{amount}","text":"{amount} cents","note":"{note}","list":["{customer}","{note}"]}"#,
            &json::Limits::DATA,
        );
        let template = FilledValue::parse(&template.expect("JSON")).expect("it reads");
        let filled = template.fill(&given).expect("filled").expect("a value");
        assert_eq!(json::canonical(&filled), r#"{"amount":5,"list":[{"id":"c/1 é"},null],"text":"5 cents"}"#);
    }
}
