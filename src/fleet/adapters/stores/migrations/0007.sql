-- Where many write at once no row counts ids and events: sequences do.
{numbers}
