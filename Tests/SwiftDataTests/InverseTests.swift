import CoreData
import Expectations
import Foundation
import Testing

@testable import SwiftData

/// Plain pairs of relationships, some of which are inverses of each other.
private enum Pairs {
    /// Both sides lead to many objects.
    @Model final class Song {
        var title: String
        var singers: [Singer] = []

        init(_ title: String) { self.title = title }
    }

    @Model final class Singer {
        var name: String
        var songs: [Song]?

        init(_ name: String) { self.name = name }
    }

    /// One side needs an object.
    @Model final class Letter {
        var text: String
        var box: Letterbox

        init(_ text: String, box: Letterbox) {
            self.text = text
            self.box = box
        }
    }

    @Model final class Letterbox {
        var number: Int
        var letters: [Letter] = []

        init(number: Int) { self.number = number }
    }

    /// Two relationships lead the same way.
    @Model final class Match {
        var day: Int
        var home: Team?
        var guest: Team?

        init(day: Int) { self.day = day }
    }

    @Model final class Team {
        var name: String
        var matches: [Match] = []

        init(_ name: String) { self.name = name }
    }
}

@Suite("SwiftData: inverses and rules of relationships")
struct InverseTests {
    private func inverse(_ schema: Schema, _ entity: String, _ name: String) -> String? {
        schema.entitiesByName[entity]?.relationshipsByName[name]?.inverseName
    }

    @Test func `plain pairs are inverses if a to-one side is optional and one relationship leads each way`() {
        let schema = Schema([Pairs.Song.self, Pairs.Letter.self, Pairs.Match.self])
        expectEqual(inverse(schema, "Song", "singers"), "songs")
        expectEqual(inverse(schema, "Singer", "songs"), "singers")
        expectEqual(inverse(schema, "Letter", "box"), nil)
        expectEqual(inverse(schema, "Letterbox", "letters"), nil)
        for name in ["home", "guest"] { expectEqual(inverse(schema, "Match", name), nil) }
        expectEqual(inverse(schema, "Team", "matches"), nil)
        expectEqual(Set(schema.entitiesByName["Match"]?.relationships.map(\.name) ?? []), ["home", "guest"])
        let entities = schema.model.entitiesByName
        let (songs, box) = (
            entities["Singer"]?.relationshipsByName["songs"], entities["Letter"]?.relationshipsByName["box"]
        )
        expect(songs?.isOptional == true && songs?.minCount == 0 && songs?.maxCount == 0 && songs?.isOrdered == false)
        expect(box?.isOptional == false && box?.minCount == 0 && box?.maxCount == 1)
        expect(entities["Song"]?.relationshipsByName["singers"]?.isOptional == false)
        expectEqual(songs?.deleteRule, .nullifyDeleteRule)
        // A property has its own name as the former one, and so has a class.
        expectEqual(songs?.renamingIdentifier, "songs")
        expectEqual(entities["Song"]?.renamingIdentifier, "Song")
        expectEqual(entities["Song"]?.attributesByName["title"]?.renamingIdentifier, "title")
    }

    @Test(arguments: Place.allCases)
    func `relationships without an inverse leave the other side alone`(_ place: Place) throws {
        let container = try place.container(Schema([Pairs.Letter.self]))
        let context = ModelContext(container)
        let box = Pairs.Letterbox(number: 1)
        let letter = Pairs.Letter("a", box: box)
        context.insert(letter)
        expect(box.letters.isEmpty && box.modelContext === context)
        let other = Pairs.Letterbox(number: 2)
        other.letters = [letter]
        context.insert(other)
        try context.save()
        let read = try require(try ModelContext(container).fetch(FetchDescriptor<Pairs.Letter>()).first)
        expectEqual(read.box.number, 1)
        let boxes = try require(read.modelContext).fetch(
            FetchDescriptor<Pairs.Letterbox>(sortBy: [SortDescriptor(\.number)])
        )
        expectEqual(boxes.map { $0.letters.map(\.text) }, [[], ["a"]])
    }

    @Test(arguments: Place.allCases)
    func `many-to-many relationships without a named inverse keep all members`(_ place: Place) throws {
        let container = try place.container(Schema([Pairs.Song.self]))
        let context = ModelContext(container)
        let songs = (0..<6).map { Pairs.Song("\($0)") }
        let singers = ["Ada", "Bea", "Cid"].map { Pairs.Singer($0) }
        for song in songs { context.insert(song) }
        // Members are set from both sides, before and after a save.
        singers[0].songs = songs
        for song in songs.prefix(3) { song.singers.append(singers[1]) }
        try context.save()
        singers[2].songs = [songs[0], songs[5]]
        songs[1].singers.removeAll { $0 === singers[0] }
        try context.save()
        let other = ModelContext(container)
        let read = try other.fetch(FetchDescriptor<Pairs.Song>(sortBy: [SortDescriptor(\.title)]))
        expectEqual(
            read.map { $0.singers.map(\.name).sorted().joined(separator: " ") },
            ["Ada Bea Cid", "Bea", "Ada Bea", "Ada", "Ada", "Ada Cid"]
        )
        let names = try other.fetch(FetchDescriptor<Pairs.Singer>(sortBy: [SortDescriptor(\.name)])).map { singer in
            (singer.songs ?? []).map(\.title).sorted().joined()
        }
        expectEqual(names, ["02345", "012", "05"])
    }

    @Test(arguments: Place.allCases)
    func `an array of an optional type is empty, and never nil`(_ place: Place) throws {
        let container = try place.container(Schema([Pairs.Song.self]))
        let context = ModelContext(container)
        let singer = Pairs.Singer("Ada")
        expect(singer.songs?.isEmpty == true)
        context.insert(singer)
        expect(singer.songs?.isEmpty == true)
        singer.songs?.append(Pairs.Song("a"))
        try context.save()
        expectEqual(singer.songs?.map(\.title), ["a"])
        singer.songs = nil
        expect(singer.songs?.isEmpty == true)
        try context.save()
        let other = ModelContext(container)
        expect(try other.fetch(FetchDescriptor<Pairs.Singer>()).first?.songs?.isEmpty == true)
        expect(try other.fetch(FetchDescriptor<Pairs.Song>()).first?.singers.isEmpty == true)
    }

    @Test(arguments: Place.ownCases)
    func `the rule of no action leaves the other objects, which can lead elsewhere then`(_ place: Place) throws {
        let name = NSValueTransformerName("ShadeTransformer")
        ValueTransformer.setValueTransformer(ShadeTransformer(), forName: name)
        let container = try place.container(Schema([Book.self]))
        let context = ModelContext(container)
        let book = Book("a", number: 1)
        book.marks = [Mark(page: 1), Mark(page: 2)]
        context.insert(book)
        try context.save()
        context.delete(book)
        try context.save()
        let other = ModelContext(container)
        let marks = try other.fetch(FetchDescriptor<Mark>(sortBy: [SortDescriptor(\.page)]))
        expectEqual(marks.map(\.page), [1, 2])
        marks[0].page = 3
        marks[0].book = nil
        let second = Book("b", number: 2)
        marks[1].book = second
        try other.save()
        let third = ModelContext(container)
        expectEqual(try third.fetch(FetchDescriptor<Mark>()).map { $0.book?.title }.compactMap(\.self), ["b"])
        expectEqual(try third.fetch(FetchDescriptor<Book>()).first?.marks.map(\.page), [2])
    }
}
