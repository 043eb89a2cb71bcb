// A program, in the style of Xcode: see Tests/client.sh, which builds it.
// swift-format-ignore-file

import CoreData
import Foundation
import Recipes
import Synchronization

final class Pan: NSManagedObject {
    @NSManaged var size: Int16
    @NSManaged public var name: String?
    @NSManaged private var uses: Int64

    func use() { uses += 1 }

    var timesUsed: Int64 { uses }
}

/// How often the program's own `performAndWait` was called.
let ownCalls = Mutex(0)

extension NSManagedObjectContext {
    /// As programs have it from the time before Apple's returned values.
    func performAndWait<T>(_ block: () throws -> T) rethrows -> T {
        performAndWait { ownCalls.withLock { $0 += 1 } }
        return try block()
    }
}

func number() throws -> Int { 7 }

@main enum Cook {
    static func main() async throws {
        let kitchen = try container("Kitchen", Bundle.module.url(forResource: "Kitchen", withExtension: "momd"))
        print(try await recipes(container("Recipes", RecipeModel.url)))
        print(try await pans(kitchen))
        let context = kitchen.newBackgroundContext()
        let seven = try context.performAndWait { try number() }
        let none = context.performAndWait { context.registeredObjects.count }
        print("own: \(seven) \(none) \(ownCalls.withLock { $0 })")
    }

    static func container(_ name: String, _ model: URL?) throws -> NSPersistentContainer {
        guard let model else { throw CocoaError(.fileNoSuchFile) }
        let container = NSPersistentContainer(name: name, managedObjectModel: try NSManagedObjectModel(reading: model))
        let description = NSPersistentStoreDescription()
        description.type = NSInMemoryStoreType
        container.persistentStoreDescriptions = [description]
        var failure: (any Error)?
        container.loadPersistentStores { _, error in failure = error }
        if let failure { throw failure }
        return container
    }

    static func recipes(_ container: NSPersistentContainer) async throws -> String {
        let context = container.newBackgroundContext()
        return try await context.perform {
            let soup = Recipe(context: context)
            soup.title = "Soup"
            soup[keyPath: \Recipe.servings] = 4
            soup.rate(4.5)
            let steps = ["cut", "boil", "burn"].enumerated().map { number, text in
                let step = Step(context: context)
                step.number = Int32(number)
                step.text = text
                return step
            }
            soup.addToSteps(steps[0])
            soup.add([steps[1], steps[2]])
            soup.removeFromSteps(steps[2])
            context.delete(steps[2])
            try context.save()
            context.reset()

            let request = NSFetchRequest<Recipe>(entityName: "Recipe")
            request.predicate = try NSPredicate(translating: #Predicate<Recipe> { $0.servings > 2 })
            request.sortDescriptors = [NSSortDescriptor(keyPath: \Recipe.title, ascending: true)]
            guard let found = try context.fetch(request).first else { return "none" }
            let stepRequest = NSFetchRequest<Step>(entityName: "Step")
            stepRequest.sortDescriptors = [NSSortDescriptor(keyPath: \Step.number, ascending: true)]
            let texts = try context.fetch(stepRequest).filter { $0.recipe === found }.compactMap(\.text)
            let title = found[keyPath: \Recipe.title] ?? ""
            let line = "\(title) \(found.servings) \(found[keyPath: \Recipe.rating]) \(found.isRated)"
            let note = try RecipeModel.note("salt", in: context)
            return line + ": " + texts.joined(separator: ", ") + "; " + note
        }
    }

    static func pans(_ container: NSPersistentContainer) async throws -> String {
        let context = container.newBackgroundContext()
        return try await context.perform {
            let wok = Pan(context: context)
            wok.name = "wok"
            wok[keyPath: \Pan.size] = 28
            wok.use()
            try context.save()
            context.reset()
            let request = NSFetchRequest<Pan>(entityName: "Pan")
            request.sortDescriptors = [NSSortDescriptor(keyPath: \Pan.name, ascending: true)]
            return try context.fetch(request).map { "\($0.name ?? "") \($0.size) \($0.timesUsed)" }.joined()
        }
    }
}
