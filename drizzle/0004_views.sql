-- The rest of the public face: views for people, each column with a comment.
SELECT 1;
