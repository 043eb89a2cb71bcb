import Expectations
import Foundation
import StrataRows
import Testing

@Suite("What messages call a store")
struct PlaceNameTests {
    @Test(arguments: [
        ("postgresql://localhost/shop", "postgresql://localhost/shop"),
        ("postgresql://anna@db.example.org:5433/a?schema=books", "postgresql://db.example.org:5433/a?schema=books"),
        ("postgresql://anna:secret@localhost/shop?sslmode=require", "postgresql://localhost/shop"),
        ("postgresql://anna:se@cret@localhost/shop", "postgresql://localhost/shop"),
        ("postgresql://localhost/shop?password=secret&schema=books#secret", "postgresql://localhost/shop?schema=books"),
        ("postgresql:///shop?host=/run/postgresql&user=anna", "postgresql:///shop?host=/run/postgresql"),
        ("postgresql:///shop?host=a.example,b.example", "postgresql://a.example,b.example/shop"),
        ("postgresql://localhost?dbname=shop", "postgresql://localhost/shop"),
        ("postgresql:///shop", "postgresql:///shop"), ("memory:shop?password=secret", "memory:shop"),
    ])
    func `a URL keeps host and database apart, and loses what may be secret`(_ text: String, _ name: String) throws {
        // Not every text is a URL everywhere.
        guard let url = URL(string: text) else { return }
        expectEqual(url.placeName, name)
    }

    @Test func `a file is called by its path`() {
        expectEqual(URL(fileURLWithPath: "/tmp/a b@c?d.sqlite").placeName, "/tmp/a b@c?d.sqlite")
    }
}
