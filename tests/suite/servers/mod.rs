//! Servers as partners have them: what each product was shown to do and how a delivery to it ends (`docs/servers.md` is made
//! here), servers that behave oddly or slowly, and what becomes of the temporary file.

mod full;
mod measured;
mod odd;
mod products;
mod slow;
mod table;
mod temporaries;
