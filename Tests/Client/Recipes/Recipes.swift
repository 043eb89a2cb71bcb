// A library of a program, in the style of Xcode: see Tests/client.sh, which builds it.
// swift-format-ignore-file

import CoreData
import Foundation

open class Recipe: NSManagedObject {
    @NSManaged open var title: String?
    @NSManaged public var servings: Int16
    @NSManaged public internal(set) var rating: Double
    @NSManaged package var createdAt: Date?
    @NSManaged var secret: String?
    @NSManaged public var steps: NSSet?

    /// Sets what other modules may only read.
    public func rate(_ value: Double) {
        rating = value
        secret = "rated"
        createdAt = Date(timeIntervalSinceReferenceDate: 0)
    }

    public var isRated: Bool { secret == "rated" && createdAt != nil }
}

extension Recipe {
    @NSManaged func addSteps(_ values: NSSet)

    @NSManaged public func addToSteps(_ value: Step)
    @NSManaged public func removeFromSteps(_ value: Step)

    public func add(_ steps: [Step]) { addSteps(NSSet(array: steps)) }
}

public class Step: NSManagedObject {
    @NSManaged public var number: Int32
    @NSManaged public var text: String?
    @NSManaged public var recipe: Recipe?
}

final class Note: NSManagedObject {
    @NSManaged var body: String?
    @NSManaged public var seen: Bool
}

public enum RecipeModel {
    public static var url: URL? { Bundle.module.url(forResource: "Recipes", withExtension: "momd") }

    /// Stores a note, and reads it again.
    public static func note(_ text: String, in context: NSManagedObjectContext) throws -> String {
        let note = Note(context: context)
        note.body = text
        note.seen = true
        try context.save()
        context.reset()
        let found = try context.fetch(NSFetchRequest<Note>(entityName: "Note"))
        return found.map { "\($0.body ?? "") \($0.seen)" }.joined()
    }
}
