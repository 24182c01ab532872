"""Content-addressed blobs, trees and stage results on disk."""
