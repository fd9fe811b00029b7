//! The address of a store on a server.

use std::fmt;

#[cfg(feature = "postgres")]
use onceseal_store::PostgresUrl;

use super::ConfigError;

/// The address of a store on a server, `postgres://…`. There may be a password in
/// it, so it is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreAddress(String);

impl StoreAddress {
    /// An address that can be used; white space around it, as a file has it, is none of it.
    ///
    /// # Errors
    /// `setting_invalid`: what is wrong with it, without quoting it.
    pub fn parse(text: &str) -> Result<StoreAddress, ConfigError> {
        let address = StoreAddress(text.trim().to_owned());
        address.check()?;
        Ok(address)
    }

    /// The address without what is secret: hosts, database and schema.
    #[must_use]
    pub fn shown(&self) -> String {
        #[cfg(feature = "postgres")]
        let shown = self.url().map(|url| url.to_string());
        #[cfg(not(feature = "postgres"))]
        let shown = self.check().map(|()| String::new());
        shown.unwrap_or_else(|error| error.to_string())
    }

    #[cfg(feature = "postgres")]
    fn check(&self) -> Result<(), ConfigError> {
        self.url().map(drop)
    }

    #[cfg(not(feature = "postgres"))]
    fn check(&self) -> Result<(), ConfigError> {
        Err(ConfigError::Setting("store: this program was built without PostgreSQL".to_owned()))
    }

    /// The address as the store takes it. Where it has no password, `PGPASSWORD` may
    /// have one.
    #[cfg(feature = "postgres")]
    pub(crate) fn url(&self) -> Result<PostgresUrl, ConfigError> {
        let url: PostgresUrl =
            self.0.parse().map_err(|error| ConfigError::Setting(format!("store: {error}")))?;
        Ok(match std::env::var("PGPASSWORD") {
            Ok(password) => url.or_password(&password),
            Err(_) => url,
        })
    }
}

impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}
