import CoreData
import Expectations
import TestSupport
import Testing

/// Once changes of a relationship are saved or dropped, they are no changes any more, and no later save writes them.
@Suite("Relationships whose changes are saved")
struct CommittedRelationshipTests {
    enum Change: CaseIterable {
        case addition, removal, exchange, reordering, replacement
    }

    enum End: CaseIterable { case save, rollback, refresh }

    private func change(_ venue: Venue, _ change: Change, _ context: NSManagedObjectContext) {
        switch change {
        case .addition:
            venue.tags.insert(Tag(context: context))
            venue.photos.insert(Photo(context: context), at: 1)
        case .removal:
            venue.tags.removeFirst()
            venue.photos.remove(at: 1)
        case .exchange:
            venue.tags.removeFirst()
            venue.tags.insert(Tag(context: context))
            venue.photos[0] = Photo(context: context)
        case .reordering: venue.photos.reverse()
        case .replacement:
            venue.tags = [Tag(context: context)]
            venue.photos = [Photo(context: context)]
        }
    }

    private func venue(_ context: NSManagedObjectContext) throws -> Venue {
        let venue = Venue(context: context)
        venue.tags = Set((0..<3).map { _ in Tag(context: context) })
        venue.photos = (0..<3).map { _ in Photo(context: context) }
        try context.save()
        return venue
    }

    @Test(arguments: StoreKind.allCases, Change.allCases)
    func `are unchanged, and a later change of an attribute is the only one`(_ kind: StoreKind, _ change: Change) throws
    {
        let stack = kind == .memory ? try Stack(kind) : try Stack.recording(GuideModel.make(), kind)
        for end in End.allCases {
            let (context, other) = (stack.context(), stack.context())
            try context.performAndWait {
                let venue = try venue(context)
                let before = (tags: venue.tags, photos: venue.photos)
                self.change(venue, change, context)
                switch end {
                case .save: try context.save()
                case .rollback: context.rollback()
                case .refresh:
                    context.refresh(venue, mergeChanges: false)
                    try context.save()
                }
                if end == .rollback { expect(venue.tags == before.tags && venue.photos == before.photos) }
                expect(!context.hasChanges && !venue.hasChanges && venue.changedValues().isEmpty, "\(end)")
                let shown = (tags: venue.tags.map(\.objectID), photos: venue.photos.map(\.objectID))
                let id = venue.objectID
                try other.performAndWait {
                    let same = try require(try other.existingObject(with: id) as? Venue)
                    expectEqual(Set(same.tags.map(\.objectID)), Set(shown.tags))
                    expectEqual(same.photos.map(\.objectID), shown.photos)
                }
                let token = kind == .memory ? nil : try stack.currentToken
                venue.name = "changed"
                expectEqual(Set(venue.changedValues().keys), ["name"], "\(end)")
                try context.save()
                if let token {
                    let changes = try stack.changes(after: token)
                    expectEqual(changes.map { $0.updatedProperties?.map(\.name) }, [["name"]], "\(end)")
                }
            }
        }
        try expectEqual(stack.problems(), [])
    }
}
