//! QR codes of short URLs.
