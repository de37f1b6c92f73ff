//! stub
#[derive(Default)]
pub struct Credentials {
    pub api_key: Option<String>,
    pub bearer: bool,
    pub headers: Vec<(String, Option<String>)>,
    pub auth_header: bool,
}
