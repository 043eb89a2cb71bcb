import Expectations
import Foundation
import SwiftData
import Testing

/// Programs in the manner of samples, books and apps for Apple's platforms.
@Suite("SwiftData: programs as people write them")
struct ForeignModelTests {
    @Test(arguments: Place.allCases)
    func `trips of several classes are planned, found and deleted`(_ place: Place) throws {
        typealias Trips = Journeys
        let schema = Schema([Trips.Journey.self, Trips.BusinessJourney.self, Trips.PersonalJourney.self])
        let container = try place.container(schema)
        let context = ModelContext(container)
        let trip = Trips.Journey(name: "Summer", destination: "Rome", startDate: .distantPast)
        context.insert(trip)
        trip.lodging = Trips.Lodging(address: "Via 1", placeName: "Hotel", isConfirmed: true)
        trip.wishes.append(Trips.Wish(title: "Forum", details: "", hasReservation: false, isInPlan: true))
        trip.wishes.append(Trips.Wish(title: "Museum", details: "", hasReservation: true, isInPlan: false))
        context.insert(Trips.BusinessJourney(name: "Fair", destination: "Turin", perdiem: 40))
        context.insert(Trips.PersonalJourney(name: "Wedding", destination: "Bari", reason: .family))
        context.insert(Trips.Journey(copying: Trips.Journey.preview))
        try context.save()
        let other = ModelContext(container)
        let all = try other.fetch(FetchDescriptor<Trips.Journey>(sortBy: [SortDescriptor(\.name)]))
        expectEqual(all.map(\.displayName), ["Fair", "Summer", "Trip", "Wedding"])
        expectEqual(all.map { "\($0)" }[1], "Summer to Rome")
        expectEqual((all[0] as? Trips.BusinessJourney)?.perdiem, 40)
        expectEqual((all[3] as? Trips.PersonalJourney)?.reason, .family)
        expectEqual(all[1].wishes.map(\.title), ["Forum", "Museum"])
        expect(all[1].lodging?.journey === all[1])
        let business = try other.fetchCount(
            FetchDescriptor<Trips.Journey>(predicate: #Predicate { $0 is Trips.BusinessJourney })
        )
        expectEqual(business, 1)
        other.delete(all[1])
        try other.save()
        expectEqual(try other.fetchCount(FetchDescriptor<Trips.Wish>()), 0)
        expectEqual(try other.fetchCount(FetchDescriptor<Trips.Lodging>()), 0)
    }

    @Test(arguments: Place.allCases)
    func `birds have species, foods and colours`(_ place: Place) throws {
        let container = try place.container(Schema([Fowl.self, FowlSpecies.self, Feed.self]))
        let context = ModelContext(container)
        let species = FowlSpecies(id: "swift")
        let seeds = Feed(id: "seeds", name: "Seeds", finishedDuration: 3600)
        let palette = BirdPalette(
            head: ColorData(red: 1, green: 0.5, blue: 0),
            belly: ColorData(red: 0, green: 0, blue: 1)
        )
        let bird = Fowl(species: species, colors: palette, tag: "a")
        bird.favoriteFood = seeds
        bird.dislikedFoods?.append(Feed(id: "rice", name: "Rice", finishedDuration: 60))
        bird.timeIntervals = [1, 2.5]
        context.insert(bird)
        try context.save()
        let read = try require(try ModelContext(container).fetch(FetchDescriptor<Fowl>()).first)
        expectEqual(read.id, bird.id)
        expect(read.colors == palette && read.species?.id == "swift" && read.timeIntervals == [1, 2.5])
        expectEqual(read.favoriteFood?.admirers.map(\.tag), ["a"])
        expectEqual(read.dislikedFoods?.map(\.name), ["Rice"])
        expectEqual(read.species?.partCount, 1)
        expect(!read.isHighlighted && FowlSpecies(id: "a") < FowlSpecies(id: "b"))
    }

    @Test(arguments: Place.allCases)
    func `sample data are loaded, and loaded again`(_ place: Place) throws {
        let context = ModelContext(try place.container(Schema([AnimalGroup.self, Animal.self])))
        AnimalGroup.insertSampleData(modelContext: context)
        try context.save()
        AnimalGroup.reloadSampleData(modelContext: context)
        try context.save()
        let groups = try context.fetch(FetchDescriptor<AnimalGroup>(sortBy: [SortDescriptor(\.name)]))
        expectEqual(groups.map(\.name), ["Fish", "Mammal"])
        expectEqual(groups.map { $0.animals.map(\.name) }, [["Carp"], ["Dog", "Whale"]])
        expectEqual(groups[0].animals.first?.diet, .omnivorous)
        let name = "Mammal"
        let mammals = try context.fetch(FetchDescriptor<Animal>(predicate: #Predicate { $0.group?.name == name }))
        expectEqual(Set(mammals.map(\.name)), ["Dog", "Whale"])
    }

    @Test(arguments: Place.ownCases)
    func `an actor imports a feed, and imports it again`(_ place: Place) async throws {
        let container = try place.container(Schema([Tremor.self]))
        let store = TremorStore(modelContainer: container)
        let first = #"{"properties": {"mag": 2.5, "place": "10 km N of Rome", "code": "a"}}"#
        let second = #"{"properties": {"mag": 4, "place": "Bari", "code": "b"}}"#
        let feed = Data("{\"features\": [\(first), \(second)]}".utf8)
        expectEqual(try await store.importFeed(feed), 2)
        expectEqual(try await store.importFeed(feed), 4)
        expectEqual(try await store.codes(), ["b", "a"])
        let context = ModelContext(container)
        let found = try context.fetch(
            FetchDescriptor(
                predicate: Tremor.predicate(searchText: "rome", since: Date.distantPast.addingTimeInterval(-1))
            )
        )
        expectEqual(found.map(\.code), ["a"])
        expectEqual(Tremor.total(modelContext: context), 2)
    }

    @Test(arguments: Place.allCases)
    func `recipes keep their order of steps, pictures and labels`(_ place: Place) throws {
        let container = try place.container(Schema([Dish.self, Ingredient.self, DishLabel.self]))
        let context = ModelContext(container)
        let dish = Dish(title: "Soup", meal: .lunch, steps: ["b", "a"], ingredients: [Ingredient("Salt")])
        dish.image = Data(repeating: 7, count: 200_000)
        dish.ingredients[0].amount = Measurement(value: 3, unit: UnitMass.grams)
        let label = DishLabel(name: "warm")
        dish.labels.append(label)
        context.insert(dish)
        dish.mealText = "breakfast"
        try context.save()
        let read = try require(try ModelContext(container).fetch(FetchDescriptor<Dish>()).first)
        expectEqual(read.id, dish.id)
        expect(read.meal == .breakfast && read.steps == ["b", "a"] && read.image?.count == 200_000)
        expectEqual(read.ingredients.first?.amount?.value, 3)
        expect(read.labels.first?.dishes?.first === read && read.upper == "SOUP" && read.lower == "soup")
        expectEqual(read.labels.first?.id, label.id)
    }

    @Test(arguments: Place.allCases)
    func `a class that is Codable itself is made of JSON, and is encoded`(_ place: Place) throws {
        let container = try place.container(Schema([Volume.self]))
        let context = ModelContext(container)
        let text = #"[{"title": "A", "isbn": "1", "authors": ["x", "y"]}, {"title": "B", "isbn": "2", "authors": []}]"#
        let books = try JSONDecoder().decode([Volume].self, from: Data(text.utf8))
        for book in books { context.insert(book) }
        books[0].advance()
        try context.save()
        let read = try ModelContext(container).fetch(FetchDescriptor<Volume>(sortBy: [SortDescriptor(\.title)]))
        expect(read.map(\.status) == [.inProgress, .onShelf] && read.map(\.changes) == [1, 0])
        let again = try JSONDecoder().decode([Volume].self, from: try JSONEncoder().encode(read))
        expectEqual(again.map(\.authors), [["x", "y"], []])
    }

    @Test(arguments: Place.allCases)
    func `a tree with kinds behind computed properties`(_ place: Place) throws {
        let container = try place.container(Schema([Branch.self]))
        let context = ModelContext(container)
        expect(Branch(title: "") == nil)
        let root = try require(Branch(title: "root", children: []))
        context.insert(root)
        for (order, title) in ["b", "a", "c"].enumerated() {
            let child = try Branch(checked: title)
            child.order = -order
            child.kind = .twig
            child.owner = root
            root.children?.append(child)
        }
        root.marks = ["x"]
        root.counts = ["k": 2]
        root.scores.append(1.5)
        try context.save()
        let read = try require(
            try ModelContext(container).fetch(FetchDescriptor<Branch>(predicate: #Predicate { $0.parent == nil })).first
        )
        expectEqual(read.sortedChildren.map(\.title), ["c", "a", "b"])
        expect(read[0]?.kind == .twig && read[0]?.parent === read && read[0]?.owner === read && read.owner == nil)
        expect(read.marks == ["x"] && read.counts == ["k": 2] && read.scores == [1.5] && read.createdBy == nil)
        let titled: any Titled = read
        titled.title = "new"
        expect(read.hasChanges && read.title == "new")
    }

    @Test(arguments: Place.allCases)
    func `values of the library and of the class itself come back`(_ place: Place) throws {
        let container = try place.container(Schema([Gadget.self]))
        let context = ModelContext(container)
        let gadget = Gadget(number: 1, serial: "s-1")
        gadget.state = .failed(code: 3, reason: nil)
        gadget.history = [.idle, .running(2)]
        gadget.size = CGSize(width: 1, height: 2.5)
        gadget.isSelected = true
        context.insert(gadget)
        try context.save()
        let read = try require(try ModelContext(container).fetch(FetchDescriptor<Gadget>()).first)
        expect(read.state == .failed(code: 3, reason: nil) && read.history == [.idle, .running(2)])
        expect(read.limits == 0...10 && read.spans == 0..<1 && read.size == CGSize(width: 1, height: 2.5))
        expect(read.ratio == 0.5 && read.zoneInfo == TimeZone(identifier: "UTC") && read.price == Decimal(9.99))
        expect(read.when == DateComponents(year: 2024, month: 2) && read.tuple == Gadget.Pair(1, 2))
        expect(read.serial == "s-1" && read.made.timeIntervalSinceReferenceDate == 0 && read.platform == "Linux")
        expect(read.width == 1 && read.height == 2 && read.isOn && gadget.isSelected)
    }

    @Test(arguments: Place.ownCases)
    func `notes of the first version are migrated with code`(_ place: Place) throws {
        let configuration = place.configuration
        guard place != .memory else { return }
        func write() throws {
            let container = try ModelContainer(
                for: Schema(versionedSchema: NotesV1.self),
                configurations: configuration
            )
            let context = ModelContext(container)
            for text in ["a", "", "b"] { context.insert(NotesV1.Note(text: text)) }
            try context.save()
        }
        try write()
        let container = try ModelContainer(
            for: Schema(versionedSchema: NotesV2.self),
            migrationPlan: NotesPlan.self,
            configurations: configuration
        )
        let notes = try ModelContext(container).fetch(FetchDescriptor<AppNote>(sortBy: [SortDescriptor(\.body)]))
        expectEqual(notes.map(\.body), ["a", "b"])
        expect(notes.allSatisfy { !$0.isPinned && $0.folder?.title == "All" })
    }
}
