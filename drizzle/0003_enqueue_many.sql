-- Many messages in one statement a table; the checks of one message stand in one place.
SELECT 1;
