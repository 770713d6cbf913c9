-- Display pieces whose region is not known yet: upkeep looks for it again.
CREATE INDEX display_places_unknown ON display_places (thng_id) WHERE region = '';
